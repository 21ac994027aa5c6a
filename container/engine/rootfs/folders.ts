/**
 * Owns the folders of the data directory: one tree for each sandbox, made whole or not at all.
 * Does not own what is mounted of them (room/root.ts) nor copies of them (snapshots.ts).
 */
import { chownSync, existsSync, mkdirSync, renameSync } from "node:fs";
import { roomUser } from "../jail/identity.ts";
import { exchange } from "../jail/kernel.ts";
import { log, messageOf } from "../log.ts";
import { removeFolder } from "./copy.ts";

export type Places = {
  trees: string;
  snapshots: string;
  /** What is to be removed is moved here first, so that it is gone at once and for good. */
  trash: string;
  skeleton: string;
  mountAt: string;
  records: string;
  /** A file for each `pasta` that runs, with its process id. */
  pastas: string;
};

export type Tree = {
  root: { upper: string; work: string };
  usr: { upper: string; work: string };
  workspace: string;
};

export function makePlaces(data: string): Places {
  const places = {
    trees: `${data}/trees`,
    snapshots: `${data}/snapshots`,
    trash: `${data}/trash`,
    skeleton: `${data}/skeleton`,
    mountAt: `${data}/mount`,
    records: `${data}/live`,
    pastas: `${data}/pasta`,
  };
  const { skeleton: _written, ...made } = places;
  // Only Berth's own user may look into sandboxes from outside.
  mkdirSync(data, { recursive: true, mode: 0o700 });
  for (const folder of Object.values(made)) mkdirSync(folder, { recursive: true, mode: 0o700 });
  return places;
}

/** The parts of a tree that a snapshot saves; the work folders are overlay's own and begin empty. */
export const savedParts = ["root", "usr", "workspace"] as const;

export function treeAt(base: string): Tree {
  return {
    root: { upper: `${base}/root`, work: `${base}/root.work` },
    usr: { upper: `${base}/usr`, work: `${base}/usr.work` },
    workspace: `${base}/workspace`,
  };
}

export function treeOf(places: Places, id: string): Tree {
  return treeAt(`${places.trees}/${id}`);
}

export function hasTree(places: Places, id: string): boolean {
  return existsSync(`${places.trees}/${id}`);
}

export function makeTree(places: Places, id: string): void {
  const base = partBase(places, id);
  wholeOrGone(places, base, () => {
    mkdirSync(base);
    for (const part of savedParts) mkdirSync(`${base}/${part}`);
    const { root, usr, workspace } = treeAt(base);
    for (const folder of [root.work, usr.work]) mkdirSync(folder);
    if (process.getuid?.() === 0) chownSync(workspace, roomUser.uid, roomUser.gid);
    renameSync(base, `${places.trees}/${id}`);
  });
}

/** Takes a folder with all saved parts as the sandbox's tree, in place of what it had; or discards it. */
export function adoptTree(places: Places, id: string, base: string): void {
  const { root, usr } = treeAt(base);
  const at = `${places.trees}/${id}`;
  wholeOrGone(places, base, () => {
    for (const folder of [root.work, usr.work]) mkdirSync(folder);
    // In one step: a crash leaves the old tree or the new one in its place, never none.
    if (hasTree(places, id)) exchange(base, at);
    else renameSync(base, at);
  });
  discard(places, base);
}

/** A disk without room may refuse any step: what was put together by then would take room for nothing. */
function wholeOrGone(places: Places, base: string, steps: () => void): void {
  try {
    steps();
  } catch (error) {
    discard(places, base);
    throw error;
  }
}

export function discardTree(places: Places, id: string): void {
  if (hasTree(places, id)) discard(places, `${places.trees}/${id}`);
}

/** A name beside the trees under which one is put together. */
export function partBase(places: Places, id: string): string {
  return `${places.trash}/${id}.${crypto.randomUUID()}`;
}

/** Gone from its place when this returns, if it was there; the bytes follow. What a crash leaves, the next start removes. */
export function discard(places: Places, folder: string): void {
  if (!existsSync(folder)) return;
  const to = partBase(places, "discarded");
  renameSync(folder, to);
  removeFolder(to).catch((error: unknown) => log("trash_kept", { why: messageOf(error) }));
}
