/** Lists a page of a folder's entries, to any depth, in the order of their bytes. A cursor is the last name. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { FilesPage } from "../../../src/protocol/file.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { catchCodes } from "../kernel/error-codes.ts";
import {
  closing,
  currentFolder,
  readEntries,
  readlinkAt,
  type Status,
  statusAt,
} from "../kernel/openat.ts";
import { refuse } from "../server/fields.ts";
import {
  isText,
  isView,
  openNames,
  openNamesIfReadable,
  realPathOf,
  type Target,
  textOf,
} from "./paths.ts";
import { tempNamePattern } from "./unfinished.ts";
import { fileViewOf } from "./view.ts";

type ListOptions = { depth: number; limit: number; cursor?: string | undefined };

type Page = {
  entries: { raw: string; status: Status; linkTarget: string | undefined }[];
  hasMore: boolean;
  limit: number;
  namesRead: number;
};

export function* list(target: Target, options: ListOptions): Generator<undefined, FilesPage> {
  const after = options.cursor === undefined ? [] : namesOfCursor(options.cursor);
  const page: Page = { entries: [], hasMore: false, limit: options.limit, namesRead: 0 };
  const fd = openNames(currentFolder, target.raw);
  using _folder = closing(fd);
  const { shown } = target;
  const path = shown.split("/").includes("..") ? realPathOf(fd) : shown;
  yield* listFolder(page, { fd, prefix: "", mount: statusAt(fd).mount }, options.depth, after);
  return {
    files: page.entries.map((entry) => viewOfEntry(path === "/" ? "" : path, entry)),
    nextCursor: page.hasMore ? cursorOf(page.entries.at(-1)?.raw ?? "") : null,
  };
}

type Folder = { fd: number; prefix: string; mount: bigint };

function* listFolder(
  page: Page,
  folder: Folder,
  depth: number,
  [first = "", ...after]: string[],
): Generator<undefined, void> {
  for (const name of yield* smallest(page, folder.fd, first)) {
    const isOnEarlierPage = name === first;
    // Undefined: it was removed meanwhile.
    const status = catchCodes(["ENOENT"], () => statusAt(folder.fd, name));
    if (status === undefined) continue;
    if (!isOnEarlierPage) {
      if (page.entries.length === page.limit) {
        page.hasMore = true;
        return;
      }
      const linkTarget = status.kind === "link" ? linkTargetIfAny(folder.fd, name) : undefined;
      page.entries.push({ raw: folder.prefix + name, status, linkTarget });
    }
    if (status.kind === "folder" && depth > 1) {
      const start = isOnEarlierPage ? after : [];
      yield* listBelow(page, folder, { name, depth: depth - 1, after: start });
      if (page.hasMore) return;
    }
    yield;
  }
}

function* listBelow(
  page: Page,
  { fd, prefix, mount }: Folder,
  { name, depth, after }: { name: string; depth: number; after: string[] },
): Generator<undefined, void> {
  const below = openNamesIfReadable(fd, name);
  // Then only the folder itself is listed.
  if (below === undefined) return;
  using _below = closing(below);
  const belowMount = statusAt(below).mount;
  // Only a mount can lead into procfs or sysfs.
  if (belowMount !== mount && isView(below)) return;
  yield* listFolder(
    page,
    { fd: below, prefix: `${prefix}${name}/`, mount: belowMount },
    depth,
    after,
  );
}

/** The smallest names from `first` on: enough to fill the page and to know whether there are more. */
function* smallest(page: Page, fd: number, first: string): Generator<undefined, string[]> {
  const needed = page.limit - page.entries.length + 2;
  let found: string[] = [];
  let last: string | undefined;
  for (let names = readEntries(fd); names.length > 0; names = readEntries(fd)) {
    page.namesRead += names.length;
    if (page.namesRead > limits.fileListEntriesMax) throw tooMany();
    for (const { name } of names) {
      if (tempNamePattern.test(name)) continue;
      if (name >= first && (last === undefined || name < last)) found.push(name);
    }
    if (found.length >= needed * 2) {
      found = found.sort(byBytes).slice(0, needed);
      last = found.at(-1);
    }
    yield;
  }
  return found.sort(byBytes).slice(0, needed);
}

function byBytes(a: string, b: string): number {
  return a < b ? -1 : 1;
}

function linkTargetIfAny(fd: number, name: string): string | undefined {
  try {
    return readlinkAt(fd, name);
  } catch {
    return undefined;
  }
}

function viewOfEntry(path: string, { raw, status, linkTarget }: Page["entries"][number]) {
  const view = fileViewOf(`${path}/${textOf(raw)}`, status, linkTarget);
  if (isText(raw)) return view;
  const fullPath = Buffer.concat([Buffer.from(`${path}/`), Buffer.from(raw, "latin1")]);
  return { ...view, pathBase64: fullPath.toString("base64") };
}

function cursorOf(raw: string): string {
  return Buffer.from(raw, "latin1").toString("base64url");
}

function namesOfCursor(cursor: string): string[] {
  const raw = Buffer.from(cursor, "base64url").toString("latin1");
  if (raw === "" || cursorOf(raw) !== cursor) refuse("cursor", "is not from a list");
  return raw.split("/");
}

function tooMany(): BerthError {
  const limit = limits.fileListEntriesMax;
  return new BerthError("bad_request", `The list would read more than ${limit} entries.`, {
    hint: "List a folder further down, or use a smaller depth.",
    facts: { field: "path", limit },
  });
}
