/** The folders of the data directory, with one tree per sandbox that is created completely or not at all. */
import { chownSync, existsSync, mkdirSync, renameSync } from "node:fs";
import { jailUser } from "../jail/identity.ts";
import { exchangePaths } from "../jail/kernel.ts";
import { removeInBackground } from "./file-work.ts";

export type DataFolders = ReturnType<typeof makeDataFolders>;

export function makeDataFolders(data: string) {
  const folders = {
    trees: `${data}/trees`,
    snapshots: `${data}/snapshots`,
    /** Folders are moved here to be removed, so that they disappear from their path at once. */
    trash: `${data}/trash`,
    baseRootfs: `${data}/skeleton`,
    mountPoint: `${data}/mount`,
    /** Programs of Berth's own for jails and for the root of each sandbox. */
    programs: `${data}/programs`,
    /** What was pulled and imported; see images/store.ts. */
    images: `${data}/images`,
    records: `${data}/live`,
    /** One file per running `pasta`, with its PID. */
    pastas: `${data}/pasta`,
  };
  const { baseRootfs: _baseRootfs, ...created } = folders;
  // Only Berth's own user may read the files of sandboxes from outside.
  mkdirSync(data, { recursive: true, mode: 0o700 });
  for (const folder of Object.values(created)) mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folders;
}

/** The parts of a tree that a snapshot saves; the work folders belong to overlayfs and start empty. */
export const savedParts = ["root", "usr", "packages", "workspace"] as const;

function treeAt(base: string) {
  return {
    base,
    root: { upper: `${base}/root`, work: `${base}/root.work` },
    usr: { upper: `${base}/usr`, work: `${base}/usr.work` },
    /** What the sandbox has changed in the list of packages of /usr. */
    packages: { upper: `${base}/packages`, work: `${base}/packages.work` },
    workspace: `${base}/workspace`,
  };
}

export function treeOf(folders: DataFolders, id: string) {
  return treeAt(`${folders.trees}/${id}`);
}

export function hasTree(folders: DataFolders, id: string): boolean {
  return existsSync(`${folders.trees}/${id}`);
}

/** For a tree that is used again. */
export function completeTree(folders: DataFolders, id: string): void {
  addMissingParts(`${folders.trees}/${id}`);
}

export function makeTree(folders: DataFolders, id: string): void {
  const base = temporaryFolder(folders, id);
  discardOnFailure(folders, base, () => {
    mkdirSync(base);
    addMissingParts(base);
    const { workspace } = treeAt(base);
    if (process.getuid?.() === 0) chownSync(workspace, jailUser.uid, jailUser.gid);
    renameSync(base, `${folders.trees}/${id}`);
  });
}

/** Trees and snapshots of earlier versions lack parts, and snapshots have no work folders. */
function addMissingParts(base: string): void {
  const { root, usr, packages } = treeAt(base);
  const works = [root.work, usr.work, packages.work];
  for (const folder of [...savedParts.map((part) => `${base}/${part}`), ...works])
    mkdirSync(folder, { recursive: true });
}

/** Makes a folder with all saved parts the sandbox's tree, replacing its old one. Discards the folder on failure. */
export function adoptTree(folders: DataFolders, id: string, base: string): void {
  const path = `${folders.trees}/${id}`;
  discardOnFailure(folders, base, () => {
    addMissingParts(base);
    // Atomic: a crash leaves either the old tree or the new one in place, never none.
    if (hasTree(folders, id)) exchangePaths(base, path);
    else renameSync(base, path);
  });
  moveToTrash(folders, base);
}

/** Any step may fail on a full disk; the unfinished folder must not take up more space. */
function discardOnFailure(folders: DataFolders, base: string, steps: () => void): void {
  try {
    steps();
  } catch (error) {
    moveToTrash(folders, base);
    throw error;
  }
}

export function discardTree(folders: DataFolders, id: string): void {
  if (hasTree(folders, id)) moveToTrash(folders, `${folders.trees}/${id}`);
}

/** A path on the same file system under which a folder is assembled. */
export function temporaryFolder(folders: DataFolders, id: string): string {
  return `${folders.trash}/${id}.${crypto.randomUUID()}`;
}

/**
 * Removes a folder from its path at once and deletes its files in the background. After a crash the next start
 * deletes them.
 */
export function moveToTrash(folders: DataFolders, folder: string): void {
  if (!existsSync(folder)) return;
  const to = temporaryFolder(folders, "discarded");
  renameSync(folder, to);
  removeInBackground(to);
}
