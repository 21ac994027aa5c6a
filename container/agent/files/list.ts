/**
 * Owns a page of a folder's entries, to any depth, in the order of their names' bytes: a folder, then what it holds.
 * Does not own how long a piece of it may take (slices.ts). A cursor is the last told name; nothing is kept between
 * pages, and no more names than twice a page.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { FilesPage } from "../../../src/protocol/file.ts";
import { limits } from "../../../src/protocol/limits.ts";
import {
  close,
  namesOf,
  nowhere,
  open,
  type Status,
  statusAt,
  targetAt,
} from "../kernel/openat.ts";
import { refuse } from "../server/fields.ts";
import { isText, isView, openNames, placeOf, type Target, textOf } from "./paths.ts";
import { isCode } from "./refusal.ts";
import { besidePattern } from "./unfinished.ts";
import { viewOf } from "./view.ts";

export type Asked = { depth: number; limit: number; cursor?: string | undefined };

type Page = {
  entries: { raw: string; status: Status; says: string | undefined }[];
  more: boolean;
  limit: number;
  looked: number;
};

export function* list(target: Target, asked: Asked): Generator<undefined, FilesPage> {
  const after = asked.cursor === undefined ? [] : namesOfCursor(asked.cursor);
  const page: Page = { entries: [], more: false, limit: asked.limit, looked: 0 };
  const fd = openNames(nowhere, target.raw);
  try {
    const { shown } = target;
    const path = shown.split("/").includes("..") ? placeOf(fd) : shown;
    yield* listFolder(page, { fd, prefix: "", mount: statusAt(fd).mount }, asked.depth, after);
    return {
      files: page.entries.map((entry) => told(path === "/" ? "" : path, entry)),
      nextCursor: page.more ? cursorOf(page.entries.at(-1)?.raw ?? "") : null,
    };
  } finally {
    close(fd);
  }
}

type Folder = { fd: number; prefix: string; mount: bigint };

function* listFolder(
  page: Page,
  folder: Folder,
  depth: number,
  [first = "", ...after]: string[],
): Generator<undefined, void> {
  for (const name of yield* smallest(page, folder.fd, first)) {
    const isTold = name === first;
    const status = statusIf(folder.fd, name);
    if (status === undefined) continue;
    if (!isTold) {
      if (page.entries.length === page.limit) {
        page.more = true;
        return;
      }
      const says = status.kind === "link" ? saysIf(folder.fd, name) : undefined;
      page.entries.push({ raw: folder.prefix + name, status, says });
    }
    if (status.kind === "folder" && depth > 1) {
      yield* listBelow(page, folder, { name, depth: depth - 1, after: isTold ? after : [] });
      if (page.more) return;
    }
    yield;
  }
}

function* listBelow(
  page: Page,
  { fd, prefix, mount }: Folder,
  { name, depth, after }: { name: string; depth: number; after: string[] },
): Generator<undefined, void> {
  const below = openIf(fd, name);
  if (below === undefined) return;
  try {
    const at = statusAt(below).mount;
    // Only where another file system is mounted can it be one of the kernel's own views.
    if (at !== mount && isView(below)) return;
    const folder = { fd: below, prefix: `${prefix}${name}/`, mount: at };
    yield* listFolder(page, folder, depth, after);
  } finally {
    close(below);
  }
}

/** The first names from `first` on, enough to fill the page and to know whether there are more. */
function* smallest(page: Page, fd: number, first: string): Generator<undefined, string[]> {
  const want = page.limit - page.entries.length + 2;
  let kept: string[] = [];
  let last: string | undefined;
  for (let names = namesOf(fd); names.length > 0; names = namesOf(fd)) {
    page.looked += names.length;
    if (page.looked > limits.fileListEntriesMax) throw tooMany();
    for (const { name } of names) {
      if (besidePattern.test(name)) continue;
      if (name >= first && (last === undefined || name < last)) kept.push(name);
    }
    if (kept.length >= want * 2) {
      kept = kept.sort(byBytes).slice(0, want);
      last = kept.at(-1);
    }
    yield;
  }
  return kept.sort(byBytes).slice(0, want);
}

function byBytes(one: string, other: string): number {
  return one < other ? -1 : 1;
}

/** Undefined: it has gone meanwhile. */
function statusIf(fd: number, name: string): Status | undefined {
  try {
    return statusAt(fd, name);
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

function saysIf(fd: number, name: string): string | undefined {
  try {
    return targetAt(fd, name);
  } catch {
    return undefined;
  }
}

/** Undefined: it has gone, has become something else, or is closed to commands. It is told, not what it holds. */
function openIf(fd: number, name: string): number | undefined {
  try {
    return openNames(fd, name, open.noFollow);
  } catch (error) {
    if (isCode(error, "ENOENT", "ENOTDIR", "ELOOP", "EACCES", "EPERM")) return undefined;
    throw error;
  }
}

function told(path: string, { raw, status, says }: Page["entries"][number]) {
  const view = viewOf(`${path}/${textOf(raw)}`, status, says);
  if (isText(raw)) return view;
  const whole = Buffer.concat([Buffer.from(`${path}/`), Buffer.from(raw, "latin1")]);
  return { ...view, pathBase64: whole.toString("base64") };
}

function cursorOf(raw: string): string {
  return Buffer.from(raw, "latin1").toString("base64url");
}

function namesOfCursor(cursor: string): string[] {
  const raw = Buffer.from(cursor, "base64url").toString("latin1");
  if (raw === "" || cursorOf(raw) !== cursor) refuse("cursor", "is none of a list");
  return raw.split("/");
}

function tooMany(): BerthError {
  return new BerthError(
    "bad_request",
    `the list would look at more than ${limits.fileListEntriesMax} entries`,
    {
      hint: "list a folder further down, or to a smaller depth",
      facts: { field: "path", limit: limits.fileListEntriesMax },
    },
  );
}
