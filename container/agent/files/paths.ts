/**
 * Owns the way from a path of a call to an open folder and a name in it, with the rights of the calling thread.
 * Does not own those rights (libc.ts). `raw` is a path as the kernel has it, one character a byte.
 */
import { readlinkSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import {
  close,
  fileSystemOf,
  nowhere,
  open,
  openAt,
  type Spot,
  targetAt,
} from "../kernel/openat.ts";
import { isCode } from "./refusal.ts";

/** A path as its caller knows it and as the kernel has it, absolute. */
export type Target = { shown: string; raw: string };

export type Entry = Spot & {
  /** The path ended with a slash: it must be a folder. */
  asFolder: boolean;
};

export function targetOf(path: string, base: string): Target {
  const raw = rawOf(path.startsWith("/") ? path : `${base}/${path}`);
  return { shown: textOf(tidy(raw)), raw };
}

export function rawOf(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

/** Bytes that are no UTF-8 become U+FFFD. */
export function textOf(raw: string): string {
  return Buffer.from(raw, "latin1").toString("utf8");
}

export function isText(raw: string): boolean {
  return rawOf(textOf(raw)) === raw;
}

/** The folder that holds it, opened, and its name there. Whoever asks closes the folder. */
export function openEntry({ raw, shown }: Target, field = "path"): Entry {
  const { parent, name, asFolder } = split(raw);
  if (name === "" || name === "." || name === "..") {
    throw new BerthError("bad_request", `${field} ${shown} must end with a name`, {
      hint: "name it as an entry of the folder that holds it",
      facts: { field },
    });
  }
  const folder = openPlace(nowhere, parent, open.folder);
  return { folder, name, asFolder };
}

/** A place, opened without touching what is there; on a file system of which calls may know. */
export function openPlace(folder: number, raw: string, flags = 0): number {
  return allowed(openAt(folder, raw, open.placeOnly | flags));
}

/** A folder to read the names of. */
export function openNames(folder: number, raw: string, flags = 0): number {
  return allowed(openAt(folder, raw, open.read | open.folder | flags));
}

const linksMax = 40;

/** Where the entry's links lead in the end: the entry itself, where it is none. Takes the folder over. */
export function follow(entry: Entry): Entry {
  let at = entry;
  for (let links = 0; ; links += 1) {
    const target = linkTarget(at);
    if (target === undefined) return at;
    if (links === linksMax) {
      close(at.folder);
      throw Object.assign(new Error("too many links"), { code: "ELOOP" });
    }
    const { parent, name, asFolder } = split(target);
    const from = at.folder;
    try {
      at = { folder: openPlace(from, parent, open.folder), name, asFolder };
    } finally {
      close(from);
    }
  }
}

function linkTarget({ folder, name }: Entry): string | undefined {
  try {
    return targetAt(folder, name);
  } catch (error) {
    if (isCode(error, "EINVAL", "ENOENT")) return undefined;
    close(folder);
    throw error;
  }
}

/**
 * The kernel's own views of processes and devices: there the caller would be the agent, whose memory and descriptors
 * must stay closed, whatever the path to them looks like.
 */
const views = { proc: 0x9fa0, sysfs: 0x62656572 } as const;

export function isView(fd: number): boolean {
  const kind = fileSystemOf(fd);
  return kind === views.proc || kind === views.sysfs;
}

function allowed(fd: number): number {
  if (!isView(fd)) return fd;
  close(fd);
  throw Object.assign(new Error("a view of the kernel"), { code: "EACCES" });
}

function split(raw: string): { parent: string; name: string; asFolder: boolean } {
  const whole = raw.replace(/\/+$/, "");
  const slash = whole.lastIndexOf("/");
  const parent = slash < 0 ? "." : whole.slice(0, slash + 1);
  const name = whole.slice(slash + 1);
  return { parent: parent === "" ? "/" : parent, name, asFolder: whole !== raw };
}

/** Without what means nothing. `..` after a link means what the kernel says: only a look at the place can tell. */
function tidy(raw: string): string {
  const names = raw.split("/").filter((name) => name !== "" && name !== ".");
  return `/${names.join("/")}`;
}

/** As it is called when no link and no `..` is left in it. */
export function placeOf(fd: number): string {
  return readlinkSync(`/proc/self/fd/${fd}`, { encoding: "utf8" });
}

/** The path to show for an entry: as it was asked for, or without `..`. */
export function shownOf({ shown }: Target, { folder, name }: Spot): string {
  if (!shown.split("/").includes("..")) return shown;
  const place = placeOf(folder);
  return `${place === "/" ? "" : place}/${textOf(name)}`;
}
