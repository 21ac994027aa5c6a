/**
 * Owns the look whether somebody else listens on a port already: he would answer in place of the one that is started,
 * which fails a moment later. Does not own the wait until it is open: the sandbox's agent has that.
 */
import type { SandboxHandle } from "../../client/index.ts";
import { Failure } from "../failure.ts";

const listening = "0A";

export async function demandPort(
  sandbox: SandboxHandle,
  port: number,
  options: { lease: string; signal: AbortSignal },
): Promise<void> {
  // What is not there of the two is left out.
  const argv = ["cat", "/proc/net/tcp", "/proc/net/tcp6"];
  const { stdout } = await sandbox.exec({ argv }, options);
  if (!isTaken(stdout, port)) return;
  throw new Failure(`something listens on port ${port} already; nothing was started`, {
    hint: "`berth ps` shows what runs in the sandbox, `berth kill` ends it.",
    code: "port_taken",
    facts: { sandbox: sandbox.id, port },
  });
}

/** By the kernel's tables: a line for each socket, with its local address and its state in hexadecimal. */
export function isTaken(tables: string, port: number): boolean {
  return tables.split("\n").some((line) => {
    const [, local = "", , state] = line.trim().split(/\s+/);
    return state === listening && Number.parseInt(local.split(":").at(-1) ?? "", 16) === port;
  });
}
