/**
 * Owns the way out by `pasta`, one process for each sandbox, which needs no root.
 * Does not own the choice of it (mode.ts).
 */
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { argumentsOf, nameOf, type ProcessName, sendSignal } from "../processes.ts";
import { run } from "../run.ts";
import type { Connection } from "./connect.ts";

const startTimeoutMs = 10_000;

/** Where a sandbox asks for names when only the machine's loopback has a server. */
export const pastaNameServer = "169.254.1.53";

/** No port is passed in either direction, and the gateway's address does not lead to the machine. */
const options = [
  ...["--config-net", "--quiet", "--no-map-gw", "--dns-forward", pastaNameServer],
  ...["--tcp-ports", "none", "--udp-ports", "none", "--tcp-ns", "none", "--udp-ns", "none"],
];

export async function connectPasta(folder: string, agentPid: number): Promise<Connection> {
  const pidFile = `${folder}/${agentPid}`;
  // It returns once the network is there, and goes on in the background.
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

/** Ends those of an earlier engine. */
export function endPastas(folder: string): void {
  for (const name of readdirSync(folder)) {
    const pidFile = `${folder}/${name}`;
    const process = processOf(pidFile);
    // A number on disk may belong to somebody else by now; only its own pasta was given this file.
    if (process !== undefined && argumentsOf(process.pid).includes(pidFile)) {
      sendSignal(process, "SIGKILL");
    }
    rmSync(pidFile, { force: true });
  }
}

function processOf(pidFile: string): ProcessName | undefined {
  const pid = Number.parseInt(readFileSync(pidFile, "utf8"), 10);
  return Number.isInteger(pid) ? nameOf(pid) : undefined;
}
