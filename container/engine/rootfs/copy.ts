/**
 * Copies and removes whole trees with owners, times, links and overlay marks.
 */
import { statfsSync } from "node:fs";
import { BerthError } from "../../../src/protocol/errors.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { runFileWork } from "./file-work.ts";

export async function copyInto(
  sources: string[],
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  try {
    await runCopyProgram(["cp", "--archive", "--reflink=auto", "--", ...sources, folder], signal);
  } catch (error) {
    if (signal.aborted || !isDiskFull(folder)) throw error;
    throw new BerthError(
      "disk_full",
      "The disk of this machine is too full for a copy of the files.",
      {
        hint: "Remove checkpoints that are no longer needed, or free disk space below the data folder.",
      },
    );
  }
}

export async function removeFolder(folder: string): Promise<void> {
  await runCopyProgram(["rm", "--recursive", "--force", "--", folder]);
}

export async function diskUsageOf(folder: string): Promise<number> {
  return Number.parseInt(
    await runCopyProgram(["du", "--summarize", "--block-size=1", "--", folder]),
    10,
  );
}

function runCopyProgram(argv: string[], signal?: AbortSignal): Promise<string> {
  return runFileWork(argv, { timeoutMs: limits.snapshotTimeoutMs, signal });
}

/** A copy writes in pieces and fails with less than this left. */
const freeBytesMin = 1024 * 1024;

export function isDiskFull(folder: string): boolean {
  const { bavail, bfree, bsize, ffree, files } = statfsSync(folder);
  const free = (process.getuid?.() === 0 ? bfree : bavail) * bsize;
  return free < freeBytesMin || (files > 0 && ffree === 0);
}

/** Whether the kernel refused a write because the disk is full. */
export function isDiskFullError(thrown: unknown): boolean {
  return (
    thrown instanceof Error && "code" in thrown && /^(ENOSPC|EDQUOT)$/.test(String(thrown.code))
  );
}
