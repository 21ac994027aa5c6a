/**
 * Lists the ports on which a machine listens, and checks from inside a sandbox which of them can be reached.
 */
import { readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { openFiles } from "./processes.ts";
import type { RunningServer } from "./server.ts";

export type Target = { host: string; port: number };

/** States, as the tables of the kernel write them. */
const listening = "0A";
const established = "01";

/** The ports on which these processes take connections. */
export function portsOf(pids: number[]): number[] {
  return localAddresses(pids, listening).map((local) =>
    Number.parseInt(local.split(":").at(-1) ?? "", 16),
  );
}

/** How many connections this process has. */
export function connectionsOf(pid: number): number {
  return localAddresses([pid], established).length;
}

/** The local addresses of the sockets of these processes that are in this state. */
function localAddresses(pids: number[], wanted: string): string[] {
  const files = pids.flatMap(openFiles);
  const inodes = new Set(files.map((file) => /^socket:\[(\d+)\]$/.exec(file)?.[1]));
  const rows = ["tcp", "tcp6"].flatMap((table) =>
    readFileSync(`/proc/net/${table}`, "utf8").split("\n").slice(1),
  );
  return rows.flatMap((row) => {
    const [, local = "", , state, , , , , , inode = ""] = row.trim().split(/\s+/);
    return state === wanted && inodes.has(inode) ? [local] : [];
  });
}

/** Every address by which the machine can be called, loopback included. */
export function machineAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((all) =>
    (all ?? []).filter(({ scopeid }) => !scopeid).map(({ address }) => address),
  );
}

/** Link-local addresses of the machine, each valid on one link; those of sandboxes are among them. */
export function linkLocals(): { name: string; address: string }[] {
  return Object.entries(networkInterfaces()).flatMap(([name, all]) =>
    (all ?? []).filter(({ scopeid }) => scopeid).map(({ address }) => ({ name, address })),
  );
}

/** The targets that accept a connection from a program in the sandbox. */
export async function reachedFrom(
  server: RunningServer,
  id: string,
  targets: Target[],
): Promise<string[]> {
  const list = targets.map(({ host, port }) => `${host} ${port}`).join("\n");
  const call = { argv: ["python3", "-c", probe], stdin: list, timeoutMs: 60_000 };
  const { status, body } = await server.call("POST", `/v1/sandboxes/${id}/exec`, call);
  const { exitCode, stdout, stderr } = body as { exitCode: number; stdout: string; stderr: string };
  if (status !== 200 || exitCode !== 0 || !stdout.endsWith("done\n")) {
    throw new Error(`the check from inside failed: ${status} ${exitCode} ${stderr}`);
  }
  return stdout.split("\n").slice(0, -2);
}

const probe = `
import socket, sys
from concurrent.futures import ThreadPoolExecutor
def reached(line):
    host, port = line.split()
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
        return line
    except OSError:
        return None
lines = [line for line in sys.stdin.read().split("\\n") if line]
for line in ThreadPoolExecutor(64).map(reached, lines):
    if line: print(line)
print("done")
`;
