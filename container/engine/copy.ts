/**
 * Owns copying and removing whole trees as they are: owners, times, links, marks of overlays.
 * Does not own which trees.
 */
import { limits } from "../../src/protocol/limits.ts";
import { run } from "./run.ts";

/**
 * A single user may have made files that it cannot read itself. In a user namespace of its own it may:
 * there it is root over its own files, and over nobody else's.
 */
function asOwner(argv: string[]): string[] {
  return process.getuid?.() === 0 ? argv : ["unshare", "--user", "--map-root-user", "--", ...argv];
}

export async function copyInto(sources: string[], folder: string): Promise<void> {
  const argv = ["cp", "--archive", "--reflink=auto", "--", ...sources, folder];
  await run(asOwner(argv), { timeoutMs: limits.snapshotTimeoutMs });
}

export async function removeFolder(folder: string): Promise<void> {
  const argv = ["rm", "--recursive", "--force", "--", folder];
  await run(asOwner(argv), { timeoutMs: limits.snapshotTimeoutMs });
}

export async function bytesOf(folder: string): Promise<number> {
  const argv = ["du", "--summarize", "--block-size=1", "--", folder];
  const out = await run(asOwner(argv), { timeoutMs: limits.snapshotTimeoutMs });
  return Number.parseInt(out, 10);
}
