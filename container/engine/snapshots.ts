/**
 * Owns saved trees: made whole or not at all, restored whole or not at all, removed.
 * Does not own making the container quiet (quiet.ts).
 */
import { existsSync, mkdirSync, renameSync } from "node:fs";
import { BerthError } from "../../src/protocol/errors.ts";
import { bytesOf, copyInto, removeFolder } from "./copy.ts";
import { adoptTree, discard, hasTree, type Places, partBase, savedParts } from "./tree.ts";

/** Just being made, by where they will be. */
const underWay = new Map<string, Promise<number>>();

/** Answers the bytes it takes. The same id again answers the one that is there. */
export function makeSnapshot(places: Places, id: string, snapshotId: string): Promise<number> {
  const at = `${places.snapshots}/${snapshotId}`;
  const known = underWay.get(at);
  if (known !== undefined) return known;
  const making = make(places, id, snapshotId).finally(() => underWay.delete(at));
  underWay.set(at, making);
  return making;
}

async function make(places: Places, id: string, snapshotId: string): Promise<number> {
  const at = `${places.snapshots}/${snapshotId}`;
  if (existsSync(at)) return await bytesOf(at);
  if (!hasTree(places, id)) {
    throw new BerthError("not_running", `sandbox ${id} has no files here to save: start it first`);
  }
  const part = await copyParts(places, `${places.trees}/${id}`);
  renameSync(part, at);
  return await bytesOf(at);
}

export async function restoreInto(places: Places, id: string, snapshotId: string): Promise<void> {
  const from = `${places.snapshots}/${snapshotId}`;
  if (!existsSync(from)) {
    throw new BerthError("start_failed", `there is no snapshot ${snapshotId} on this machine`, {
      facts: { reason: "snapshot_missing" },
    });
  }
  adoptTree(places, id, await copyParts(places, from));
}

/** One that is just being made is waited for: it would appear after its removal otherwise. */
export async function removeSnapshot(places: Places, snapshotId: string): Promise<void> {
  const at = `${places.snapshots}/${snapshotId}`;
  await underWay.get(at)?.catch(() => undefined);
  if (existsSync(at)) discard(places, at);
}

async function copyParts(places: Places, from: string): Promise<string> {
  const part = partBase(places, "copy");
  mkdirSync(part);
  try {
    await copyInto(
      savedParts.map((name) => `${from}/${name}`),
      part,
    );
    return part;
  } catch (error) {
    await removeFolder(part);
    throw error;
  }
}
