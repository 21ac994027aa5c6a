/**
 * Compares the workspaces of two snapshots: bounds how many comparisons run and for how long, and keeps both
 * snapshots meanwhile. The comparison is a program of its own (changes/main.ts).
 */
import { fileURLToPath } from "node:url";
import { type Changes, changesSchema } from "../../../src/protocol/checkpoint.ts";
import { BerthError } from "../../../src/protocol/errors.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { runFileWork } from "../rootfs/file-work.ts";
import type { DataFolders } from "../rootfs/folders.ts";
import { makeSemaphore } from "../semaphore.ts";
import { requireSnapshot, whileReading } from "./snapshots.ts";

type Comparison = { fromId?: string | undefined; toId: string; listMax: number };

/** Without its extension: Bun finds the source of a checkout, or the bundle of the npm package. */
const program = fileURLToPath(new URL("changes/main", import.meta.url));
/** Each comparison keeps a processor and the disk busy. */
const atOnceMax = 2;
const waitingMax = 256;
/** Above the limit of the lists themselves, however their characters are encoded. */
const outputBytesMax = 4 * 1024 * 1024;

const comparisons = makeSemaphore(atOnceMax);
let pendingCount = 0;

export async function compareSnapshots(
  folders: DataFolders,
  { fromId, toId, listMax }: Comparison,
  signal: AbortSignal,
): Promise<Changes> {
  if (pendingCount >= atOnceMax + waitingMax) {
    throw new BerthError("unavailable", `${waitingMax} comparisons are waiting already.`);
  }
  const ids = fromId === undefined ? [toId] : [toId, fromId];
  const paths = ids.map((id) => requireSnapshot(folders, id, "not_found"));
  const [newer = "", older] = paths.map((path) => `${path}/workspace`);
  const deadline = performance.now() + limits.changesTimeoutMs;
  const argv = [process.execPath, "--no-env-file", program, newer, String(listMax)];
  if (older !== undefined) argv.push(older);
  pendingCount += 1;
  const work = comparisons(() => compare(argv, deadline, signal)).finally(() => {
    pendingCount -= 1;
  });
  return await whileReading(paths, work);
}

async function compare(argv: string[], deadline: number, signal: AbortSignal): Promise<Changes> {
  const timeoutMs = Math.ceil(deadline - performance.now());
  try {
    if (timeoutMs <= 0 || signal.aborted) throw new Error("the caller has gone");
    const text = await runFileWork(argv, { timeoutMs, signal, outputBytesMax });
    return changesSchema.parse(JSON.parse(text));
  } catch (error) {
    if (!signal.aborted && performance.now() < deadline) throw error;
    const seconds = limits.changesTimeoutMs / 1000;
    throw new BerthError("unavailable", `The comparison took longer than ${seconds} s.`);
  }
}
