/**
 * Owns copying and removing whole trees as they are: owners, times, links, marks of overlays.
 * Does not own which trees.
 */
import { statfsSync } from "node:fs";
import { BerthError } from "../../../src/protocol/errors.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { fileWork } from "./file-work.ts";

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

function work(argv: string[], unwanted?: AbortSignal): Promise<string> {
  return fileWork(argv, { timeoutMs: limits.snapshotTimeoutMs, unwanted });
}

/** A copy stops with less than this left: it writes in pieces. */
const roomBytesMin = 1024 * 1024;

export function isFull(folder: string): boolean {
  const { bavail, bfree, bsize, ffree, files } = statfsSync(folder);
  const free = (process.getuid?.() === 0 ? bfree : bavail) * bsize;
  return free < roomBytesMin || (files > 0 && ffree === 0);
}

/** Of what the kernel refuses. */
export function lacksRoom(thrown: unknown): boolean {
  return (
    thrown instanceof Error && "code" in thrown && /^(ENOSPC|EDQUOT)$/.test(String(thrown.code))
  );
}
