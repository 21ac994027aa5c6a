/**
 * Fails if something already listens on the port: it would answer in place of the new process, which then fails to
 * bind.
 */
import type { SandboxHandle } from "../../client/index.ts";
import { Failure } from "../failure.ts";

const listenState = "0A";

export async function requireFreePort(
  sandbox: SandboxHandle,
  port: number,
  options: { lease: string; signal: AbortSignal },
): Promise<void> {
  // One of the two files may be missing.
  const argv = ["cat", "/proc/net/tcp", "/proc/net/tcp6"];
  const { stdout } = await sandbox.exec({ argv }, options);
  if (!isListening(stdout, port)) return;
  throw new Failure(`Something already listens on port ${port}. Nothing was started.`, {
    hint: "Run `berth ps` to see what runs in the sandbox, and `berth kill` to end it.",
    code: "port_taken",
    facts: { sandbox: sandbox.id, port },
  });
}

/** Reads the kernel's tables: one line per socket, with its local address and state in hexadecimal. */
export function isListening(tables: string, port: number): boolean {
  return tables.split("\n").some((line) => {
    const [, local = "", , state] = line.trim().split(/\s+/);
    return state === listenState && Number.parseInt(local.split(":").at(-1) ?? "", 16) === port;
  });
}
