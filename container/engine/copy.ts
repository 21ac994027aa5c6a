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

/** Work that a call waits for, or that nobody waits for: the engine's end waits for neither. */
const giveUp = new AbortController();
const underWay = new Set<Promise<string>>();

/** The programs under way are ended and gone when this returns; what they leave half done is in the trash. */
export async function giveUpCopies(): Promise<void> {
  giveUp.abort();
  await Promise.allSettled(underWay);
}

export async function copyInto(sources: string[], folder: string): Promise<void> {
  await work(["cp", "--archive", "--reflink=auto", "--", ...sources, folder]);
}

export async function removeFolder(folder: string): Promise<void> {
  await work(["rm", "--recursive", "--force", "--", folder]);
}

export async function bytesOf(folder: string): Promise<number> {
  return Number.parseInt(await work(["du", "--summarize", "--block-size=1", "--", folder]), 10);
}

async function work(argv: string[]): Promise<string> {
  const running = run(asOwner(argv), {
    timeoutMs: limits.snapshotTimeoutMs,
    signal: giveUp.signal,
  });
  underWay.add(running);
  return await running.finally(() => underWay.delete(running));
}
