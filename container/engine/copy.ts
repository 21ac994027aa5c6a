/**
 * Owns copying and removing whole trees as they are: owners, times, links, marks of overlays.
 * Does not own which trees.
 */
import { statfsSync } from "node:fs";
import { BerthError } from "../../src/protocol/errors.ts";
import { limits } from "../../src/protocol/limits.ts";
import { run } from "./run.ts";

/**
 * A single user may have made files that it cannot read itself. In a user namespace of its own it may:
 * there it is root over its own files, and over nobody else's.
 */
function asOwner(argv: string[]): string[] {
  // An engine that is killed takes them along: what they still wrote into the next engine's trash would stay there.
  const withUs = ["setpriv", "--pdeathsig", "KILL", "--", ...argv];
  return process.getuid?.() === 0
    ? withUs
    : ["unshare", "--user", "--map-root-user", "--", ...withUs];
}

/** Work that a call waits for, or that nobody waits for: the engine's end waits for neither. */
const giveUp = new AbortController();
const underWay = new Set<Promise<string>>();

/** The programs under way are ended and gone when this returns; what they leave half done is in the trash. */
export async function giveUpCopies(): Promise<void> {
  giveUp.abort();
  await Promise.allSettled(underWay);
}

export async function copyInto(
  sources: string[],
  folder: string,
  unwanted: AbortSignal,
): Promise<void> {
  try {
    await work(["cp", "--archive", "--reflink=auto", "--", ...sources, folder], unwanted);
  } catch (error) {
    if (unwanted.aborted || !isFull(folder)) throw error;
    throw new BerthError(
      "disk_full",
      "the disk of this machine has no room for a copy of the files",
      {
        hint: "give up checkpoints that are no longer needed, or make room below the data folder",
      },
    );
  }
}

export async function removeFolder(folder: string): Promise<void> {
  await work(["rm", "--recursive", "--force", "--", folder]);
}

export async function bytesOf(folder: string): Promise<number> {
  return Number.parseInt(await work(["du", "--summarize", "--block-size=1", "--", folder]), 10);
}

async function work(argv: string[], unwanted?: AbortSignal): Promise<string> {
  const running = run(asOwner(argv), {
    timeoutMs: limits.snapshotTimeoutMs,
    signal: unwanted === undefined ? giveUp.signal : AbortSignal.any([giveUp.signal, unwanted]),
  });
  underWay.add(running);
  return await running.finally(() => underWay.delete(running));
}

/** A copy stops with less than this left: it writes in pieces. */
const roomBytesMin = 1024 * 1024;

function isFull(folder: string): boolean {
  const { bavail, bfree, bsize, ffree, files } = statfsSync(folder);
  const free = (process.getuid?.() === 0 ? bfree : bavail) * bsize;
  return free < roomBytesMin || (files > 0 && ffree === 0);
}
