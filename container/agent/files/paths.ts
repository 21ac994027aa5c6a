/** Resolves paths with the rights of the calling thread. In a `raw` path one character is one byte. */
import { readlinkSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { catchCodes } from "../kernel/error-codes.ts";
import {
  close,
  currentFolder,
  type EntryLocation,
  fileSystemType,
  KernelError,
  open,
  openAt,
  readlinkAt,
} from "../kernel/openat.ts";

/** An absolute path, as its caller knows it and as the kernel has it. */
export type Target = { shown: string; raw: string };

export type Entry = EntryLocation & {
  /** The path ended with a slash: it must be a folder. */
  asFolder: boolean;
};

/** Finds the folder at which relative paths begin: that of a call's session, else the workspace. */
export type BaseOf = (session: string | undefined) => string;

export function targetOf(path: string, base: string): Target {
  const raw = rawOf(path.startsWith("/") ? path : `${base}/${path}`);
  return { shown: textOf(tidy(raw)), raw };
}

function rawOf(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

/** Invalid UTF-8 becomes U+FFFD. */
export function textOf(raw: string): string {
  return Buffer.from(raw, "latin1").toString("utf8");
}

export function isText(raw: string): boolean {
  return rawOf(textOf(raw)) === raw;
}

/** Opens the parent folder, which the caller closes, and splits off the name in it. */
export function openEntry({ raw, shown }: Target, field = "path"): Entry {
  const { parent, name, asFolder } = split(raw);
  if (name === "" || name === "." || name === "..") {
    throw new BerthError(
      "bad_request",
      `${field} ${shown} is a folder, not a file or folder in it.`,
      {
        hint: "End the path with a name, such as notes.txt.",
        facts: { field },
      },
    );
  }
  const folder = openPath(currentFolder, parent, open.folder);
  return { folder, name, asFolder };
}

/** Opens a path without touching what is there (O_PATH). Refuses procfs and sysfs. */
export function openPath(folder: number, raw: string, flags = 0): number {
  return closeIfView(openAt(folder, raw, open.pathOnly | flags));
}

/** Opens a folder to read its names. */
export function openNames(folder: number, raw: string, flags = 0): number {
  return closeIfView(openAt(folder, raw, open.read | open.folder | flags));
}

/** Undefined: it was removed or replaced, or commands may not read it. */
export function openNamesIfReadable(
  folder: number,
  raw: string,
  flags: number = open.noFollow,
): number | undefined {
  return catchCodes(["ENOENT", "ENOTDIR", "ELOOP", "EACCES", "EPERM"], () =>
    openNames(folder, raw, flags),
  );
}

const linksMax = 40;

/** Follows the links of an entry to their end. Takes over its open folder. */
export function followLinks(entry: Entry): Entry {
  let current = entry;
  for (let links = 0; ; links += 1) {
    const target = linkTarget(current);
    if (target === undefined) return current;
    if (links === linksMax) {
      close(current.folder);
      throw new KernelError("readlink", "ELOOP");
    }
    const { parent, name, asFolder } = split(target);
    const from = current.folder;
    try {
      current = { folder: openPath(from, parent, open.folder), name, asFolder };
    } finally {
      close(from);
    }
  }
}

function linkTarget({ folder, name }: Entry): string | undefined {
  try {
    return catchCodes(["EINVAL", "ENOENT"], () => readlinkAt(folder, name));
  } catch (error) {
    close(folder);
    throw error;
  }
}

/**
 * Views of the kernel on processes and devices. The agent would be the caller there, and its memory and descriptors
 * must stay closed, whatever the path to them looks like.
 */
const views = { proc: 0x9fa0, sysfs: 0x62656572 } as const;

export function isView(fd: number): boolean {
  const kind = fileSystemType(fd);
  return kind === views.proc || kind === views.sysfs;
}

function closeIfView(fd: number): number {
  if (!isView(fd)) return fd;
  close(fd);
  throw new KernelError("open", "EACCES");
}

function split(raw: string): { parent: string; name: string; asFolder: boolean } {
  const trimmed = raw.replace(/\/+$/, "");
  const slash = trimmed.lastIndexOf("/");
  const parent = slash < 0 ? "." : trimmed.slice(0, slash + 1);
  const name = trimmed.slice(slash + 1);
  return { parent: parent === "" ? "/" : parent, name, asFolder: trimmed !== raw };
}

/** Removes empty names and dots. `..` stays, because after a link only the kernel knows where it leads. */
function tidy(raw: string): string {
  const names = raw.split("/").filter((name) => name !== "" && name !== ".");
  return `/${names.join("/")}`;
}

/** The real path of an open file or folder, without links and `..`. */
export function realPathOf(fd: number): string {
  return readlinkSync(`/proc/self/fd/${fd}`, { encoding: "utf8" });
}

/** The path to show for an entry: as the caller wrote it, or the real one if that contains `..`. */
export function shownOf({ shown }: Target, { folder, name }: EntryLocation): string {
  if (!shown.split("/").includes("..")) return shown;
  const parent = realPathOf(folder);
  return `${parent === "/" ? "" : parent}/${textOf(name)}`;
}
