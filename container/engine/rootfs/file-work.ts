/** Runs programs on the files of sandboxes with the rights of their owner, and ends them when the engine ends. */
import { statfsSync } from "node:fs";
import { limits } from "../../../src/protocol/limits.ts";
import { log, messageOf } from "../log.ts";
import { type RunOptions, run } from "../run.ts";

/**
 * Without root, files may exist that their own owner cannot read. In a user namespace of its own the engine is root
 * over exactly its own files.
 */
function asOwner(argv: string[]): string[] {
  // These programs end with a killed engine: they would otherwise write into folders that the next engine removes.
  const endsWithEngine = ["setpriv", "--pdeathsig", "KILL", "--", ...argv];
  return process.getuid?.() === 0
    ? endsWithEngine
    : ["unshare", "--user", "--map-root-user", "--", ...endsWithEngine];
}

/** Aborts all running work when the engine ends, whether or not a call waits for it. */
const shutdown = new AbortController();
const runningWork = new Set<Promise<string>>();

/** Ends the running programs and waits for their end. Half-written results are in the trash. */
export async function cancelFileWork(): Promise<void> {
  shutdown.abort();
  await Promise.allSettled(runningWork);
}

export async function runFileWork(argv: string[], options: RunOptions): Promise<string> {
  const signals = [shutdown.signal, ...(options.signal === undefined ? [] : [options.signal])];
  const running = run(asOwner(argv), { ...options, signal: AbortSignal.any(signals) });
  runningWork.add(running);
  return await running.finally(() => runningWork.delete(running));
}

export function removeInBackground(folder: string): void {
  runOnTree(["rm", "--recursive", "--force", "--", folder]).catch((error: unknown) =>
    log("trash_kept", { why: messageOf(error) }),
  );
}

export async function diskUsageOf(folder: string): Promise<number> {
  const usage = await runOnTree(["du", "--summarize", "--block-size=1", "--", folder]);
  return Number.parseInt(usage, 10);
}

function runOnTree(argv: string[], signal?: AbortSignal): Promise<string> {
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
