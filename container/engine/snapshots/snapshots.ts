/**
 * Owns saved trees: made whole or not at all, restored whole or not at all, removed once nobody reads them.
 * Does not own making the container quiet (quiet.ts).
 */
import { existsSync, mkdirSync, renameSync } from "node:fs";
import { BerthError, type ErrorCode } from "../../../src/protocol/errors.ts";
import { bytesOf, copyInto } from "../rootfs/copy.ts";
import {
  adoptTree,
  discard,
  hasTree,
  type Places,
  partBase,
  savedParts,
} from "../rootfs/folders.ts";
import { gateOf } from "../semaphore.ts";

/** Just being made, by where they will be. */
const underWay = new Map<string, Promise<number>>();
/** Just being read, by where they are. */
const reading = new Map<string, Set<Promise<unknown>>>();
/** A call that was delayed on its way must not bring back what was given up; the oldest are forgotten. */
const givenUp = new Set<string>();
const givenUpMax = 10_000;
/** Each holds a processor and a disk. */
const restoresAtOnceMax = 8;
const restoring = gateOf(restoresAtOnceMax);

/** Answers the bytes it takes. The same id again answers the one that is there. */
export function makeSnapshot(
  places: Places,
  id: string,
  snapshotId: string,
  unwanted: AbortSignal,
): Promise<number> {
  const at = `${places.snapshots}/${snapshotId}`;
  const known = underWay.get(at);
  if (known !== undefined) return known;
  const making = make(places, id, snapshotId, unwanted).finally(() => underWay.delete(at));
  underWay.set(at, making);
  return making;
}

async function make(
  places: Places,
  id: string,
  snapshotId: string,
  unwanted: AbortSignal,
): Promise<number> {
  const at = `${places.snapshots}/${snapshotId}`;
  if (existsSync(at)) return await bytesOf(at);
  if (givenUp.has(at)) throw new BerthError("not_found", `snapshot ${snapshotId} was given up`);
  if (!hasTree(places, id)) {
    throw new BerthError("not_running", `sandbox ${id} has no files here to save: start it first`);
  }
  const part = await copyParts(places, `${places.trees}/${id}`, unwanted).catch((error) => {
    if (!unwanted.aborted) throw error;
    throw new BerthError("sandbox_destroyed", `sandbox ${id} was removed while it was saved`);
  });
  renameSync(part, at);
  return await bytesOf(at);
}

export async function restoreInto(
  places: Places,
  id: string,
  snapshotId: string,
  unwanted: AbortSignal,
): Promise<void> {
  const part = await restoring(() => {
    const from = demandSnapshot(places, snapshotId, "start_failed");
    return whileRead([from], copyParts(places, from, unwanted));
  }, unwanted);
  adoptTree(places, id, part);
}

/** Where it is; it stays there while it is read. */
export function demandSnapshot(places: Places, snapshotId: string, code: ErrorCode): string {
  const at = `${places.snapshots}/${snapshotId}`;
  if (!givenUp.has(at) && existsSync(at)) return at;
  throw new BerthError(code, `there is no snapshot ${snapshotId} on this machine`, {
    facts: { reason: "snapshot_missing" },
  });
}

/** What is being read is removed only after this work. */
export async function whileRead<T>(ats: string[], work: Promise<T>): Promise<T> {
  for (const at of ats) reading.set(at, (reading.get(at) ?? new Set()).add(work));
  try {
    return await work;
  } finally {
    for (const at of ats) {
      const readers = reading.get(at);
      readers?.delete(work);
      if (readers?.size === 0) reading.delete(at);
    }
  }
}

/** One that is just being made is waited for, as it would appear after its removal; one that is read, too. */
export async function removeSnapshot(places: Places, snapshotId: string): Promise<void> {
  const at = `${places.snapshots}/${snapshotId}`;
  giveUp(at);
  await underWay.get(at)?.catch(() => undefined);
  await Promise.allSettled(reading.get(at) ?? []);
  if (existsSync(at)) discard(places, at);
}

function giveUp(at: string): void {
  givenUp.add(at);
  if (givenUp.size <= givenUpMax) return;
  for (const oldest of givenUp) {
    givenUp.delete(oldest);
    return;
  }
}

async function copyParts(places: Places, from: string, unwanted: AbortSignal): Promise<string> {
  const part = partBase(places, "copy");
  mkdirSync(part);
  try {
    const sources = savedParts.map((name) => `${from}/${name}`);
    await copyInto(sources, part, unwanted);
    return part;
  } catch (error) {
    discard(places, part);
    throw error;
  }
}
