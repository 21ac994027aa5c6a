/**
 * Creates, restores and removes saved trees. Each is saved completely or not at all, and removed only once nothing
 * reads it.
 */
import { existsSync, mkdirSync, renameSync } from "node:fs";
import { BerthError, type ErrorCode } from "../../../src/protocol/errors.ts";
import { diskUsageOf } from "../rootfs/file-work.ts";
import {
  adoptTree,
  type DataFolders,
  hasTree,
  moveToTrash,
  savedParts,
  temporaryFolder,
} from "../rootfs/folders.ts";
import { makeSemaphore } from "../semaphore.ts";
import { copyInto } from "./copy.ts";

/** Snapshots that are being made, by their path. */
const beingMade = new Map<string, Promise<number>>();
/** Work that is reading a snapshot, by its path. */
const reading = new Map<string, Set<Promise<unknown>>>();
/** Removed snapshots, so that a delayed request cannot create one again; the oldest are forgotten. */
const removedPaths = new Set<string>();
const removedPathsMax = 10_000;
/** Each restore keeps a processor and the disk busy. */
const restoresAtOnceMax = 8;
const restores = makeSemaphore(restoresAtOnceMax);

/** Returns the size in bytes. A repeated id returns the existing snapshot. */
export function makeSnapshot(
  folders: DataFolders,
  id: string,
  snapshotId: string,
  signal: AbortSignal,
): Promise<number> {
  const path = `${folders.snapshots}/${snapshotId}`;
  const existing = beingMade.get(path);
  if (existing !== undefined) return existing;
  const making = make(folders, id, snapshotId, signal).finally(() => beingMade.delete(path));
  beingMade.set(path, making);
  return making;
}

async function make(
  folders: DataFolders,
  id: string,
  snapshotId: string,
  signal: AbortSignal,
): Promise<number> {
  const path = `${folders.snapshots}/${snapshotId}`;
  if (existsSync(path)) return await diskUsageOf(path);
  if (removedPaths.has(path))
    throw new BerthError("not_found", `Snapshot ${snapshotId} was removed.`);
  if (!hasTree(folders, id)) {
    throw new BerthError("not_running", `Sandbox ${id} has no files to save. Start it first.`);
  }
  const part = await copyParts(folders, `${folders.trees}/${id}`, signal).catch((error) => {
    if (!signal.aborted) throw error;
    throw new BerthError(
      "sandbox_destroyed",
      `Sandbox ${id} was removed while it was being saved.`,
    );
  });
  renameSync(part, path);
  return await diskUsageOf(path);
}

export async function restoreInto(
  folders: DataFolders,
  id: string,
  snapshotId: string,
  signal: AbortSignal,
): Promise<void> {
  const part = await restores(() => {
    const from = requireSnapshot(folders, snapshotId, "start_failed");
    return whileReading([from], copyParts(folders, from, signal));
  }, signal);
  adoptTree(folders, id, part);
}

/** Returns the path of a snapshot, or throws `code`. Read it inside `whileReading`. */
export function requireSnapshot(folders: DataFolders, snapshotId: string, code: ErrorCode): string {
  const path = `${folders.snapshots}/${snapshotId}`;
  if (!removedPaths.has(path) && existsSync(path)) return path;
  throw new BerthError(code, `There is no snapshot ${snapshotId} on this machine.`, {
    facts: { reason: "snapshot_missing" },
  });
}

/** Keeps the snapshots at these paths until the work has ended. */
export async function whileReading<T>(paths: string[], work: Promise<T>): Promise<T> {
  for (const path of paths) reading.set(path, (reading.get(path) ?? new Set()).add(work));
  try {
    return await work;
  } finally {
    for (const path of paths) {
      const readers = reading.get(path);
      readers?.delete(work);
      if (readers?.size === 0) reading.delete(path);
    }
  }
}

/** Waits for a snapshot that is being made, which would otherwise appear after its removal, and for its readers. */
export async function removeSnapshot(folders: DataFolders, snapshotId: string): Promise<void> {
  const path = `${folders.snapshots}/${snapshotId}`;
  rememberRemoved(path);
  await beingMade.get(path)?.catch(() => undefined);
  await Promise.allSettled(reading.get(path) ?? []);
  if (existsSync(path)) moveToTrash(folders, path);
}

function rememberRemoved(path: string): void {
  removedPaths.add(path);
  if (removedPaths.size <= removedPathsMax) return;
  for (const oldest of removedPaths) {
    removedPaths.delete(oldest);
    return;
  }
}

async function copyParts(folders: DataFolders, from: string, signal: AbortSignal): Promise<string> {
  const part = temporaryFolder(folders, "copy");
  mkdirSync(part);
  try {
    const sources = savedParts.map((name) => `${from}/${name}`).filter(existsSync);
    await copyInto(sources, part, signal);
    return part;
  } catch (error) {
    moveToTrash(folders, part);
    throw error;
  }
}
