/** Connects sandboxes by `pasta`, one process per sandbox, which needs no root. */
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { argumentsOf, identifyProcess, type ProcessIdentity, sendSignal } from "../processes.ts";
import { run } from "../run.ts";
import type { Connection } from "./network.ts";

const startTimeoutMs = 10_000;

/** The name server of a sandbox if the machine's only one listens on loopback. */
export const pastaNameServer = "169.254.1.53";

/** Forwards no port in either direction, and the gateway address does not lead to the machine. */
const options = [
  ...["--config-net", "--quiet", "--no-map-gw", "--dns-forward", pastaNameServer],
  ...["--tcp-ports", "none", "--udp-ports", "none", "--tcp-ns", "none", "--udp-ns", "none"],
];

export async function connectPasta(folder: string, agentPid: number): Promise<Connection> {
  const pidFile = `${folder}/${agentPid}`;
  // pasta returns once the network is up and continues in the background.
  await run(["pasta", ...options, "--pid", pidFile, String(agentPid)], {
    timeoutMs: startTimeoutMs,
  });
  const process_ = processOf(pidFile);
  return {
    close: () => {
      if (process_ !== undefined) sendSignal(process_, "SIGKILL");
      rmSync(pidFile, { force: true });
    },
  };
}

/** Ends the pasta processes of an earlier engine. */
export function endPastas(folder: string): void {
  for (const name of readdirSync(folder)) {
    const pidFile = `${folder}/${name}`;
    const process = processOf(pidFile);
    // The PID may belong to another process by now; only the pasta of this file has it among its arguments.
    if (process !== undefined && argumentsOf(process.pid).includes(pidFile)) {
      sendSignal(process, "SIGKILL");
    }
    rmSync(pidFile, { force: true });
  }
}

function processOf(pidFile: string): ProcessIdentity | undefined {
  const pid = Number.parseInt(readFileSync(pidFile, "utf8"), 10);
  return Number.isInteger(pid) ? identifyProcess(pid) : undefined;
}
