/** Writes one file completely or not at all: the body goes to an unfinished file, which is then moved into place. */
import { fchmodSync, write } from "node:fs";
import { promisify } from "node:util";
import { catchCodes } from "../kernel/error-codes.ts";
import { type User, withUserRights } from "../kernel/libc.ts";
import { close, closing, type Status, statusAt } from "../kernel/openat.ts";
import { announcedBytes, bodyOf } from "./body.ts";
import { assertConditions, type Conditions } from "./conditions.ts";
import { notAFile, toFileError } from "./file-errors.ts";
import { makeFolders, parentOf } from "./folders.ts";
import { type Entry, followLinks, openEntry, shownOf, type Target } from "./paths.ts";
import { UnfinishedFile } from "./unfinished.ts";
import { entityTagOf, fileViewOf } from "./view.ts";

type UploadOptions = {
  target: Target;
  user: User | undefined;
  mkdirs: boolean;
  mode: string | undefined;
  conditions: Conditions;
};

const newMode = 0o644;
const permissions = 0o777;
const writeAsync = promisify(write);

export async function upload(
  request: Request,
  options: UploadOptions,
  signal: AbortSignal,
): Promise<Response> {
  announcedBytes(request);
  const { target, user } = options;
  try {
    const entry = withUserRights(user, () => findEntry(options));
    using _folder = closing(entry.folder);
    const file = withUserRights(user, () => new UnfinishedFile(entry.folder));
    using cleanup = new DisposableStack();
    cleanup.defer(() => withUserRights(user, () => file.end()));
    for await (const bytes of bodyOf(request, signal)) await writeAll(file.fd, bytes);
    const { status, isNew } = withUserRights(user, () => {
      signal.throwIfAborted();
      return moveIntoPlace(entry, file, options);
    });
    return Response.json(fileViewOf(shownOf(target, entry), status), {
      status: isNew ? 201 : 200,
      headers: { etag: entityTagOf(status) },
    });
  } catch (error) {
    throw toFileError(error, target.shown);
  }
}

/** Runs before the body is read, because most errors are known by then. */
function findEntry({ target, mkdirs, conditions }: UploadOptions): Entry {
  const entry = followLinks(openHolder(target, mkdirs));
  try {
    assertConditions(conditions, tagIf(fileAt(entry, target.shown)), target.shown);
  } catch (error) {
    close(entry.folder);
    throw error;
  }
  return entry;
}

function openHolder(target: Target, mkdirs: boolean): Entry {
  const entry = catchCodes(mkdirs ? ["ENOENT"] : [], () => openEntry(target));
  if (entry !== undefined) return entry;
  makeFolders(parentOf(target.raw));
  return openEntry(target);
}

/** Undefined: nothing exists there. */
function fileAt({ folder, name, asFolder }: Entry, shown: string): Status | undefined {
  if (asFolder || name === "" || name === "." || name === "..") throw notAFile(shown, "a folder");
  const status = catchCodes(["ENOENT"], () => statusAt(folder, name));
  if (status?.kind === "folder") throw notAFile(shown, "a folder");
  if (status?.kind === "other") throw notAFile(shown, "a device, pipe or socket");
  return status;
}

export async function writeAll(fd: number, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await writeAsync(fd, bytes, written, bytes.length - written, null);
    written += bytesWritten;
  }
}

/** One synchronous step: checks what exists, and replaces it. */
function moveIntoPlace(
  entry: Entry,
  unfinished: UnfinishedFile,
  { target, mode, conditions }: UploadOptions,
): { status: Status; isNew: boolean } {
  const old = fileAt(entry, target.shown);
  assertConditions(conditions, tagIf(old), target.shown);
  const { fd } = unfinished;
  fchmodSync(fd, mode === undefined ? permissionsOf(old) : Number.parseInt(mode, 8));
  const overwrite = old !== undefined || conditions.noneMatch !== "*";
  unfinished.moveIntoPlace(entry, { overwrite });
  return { status: statusAt(fd), isNew: old === undefined };
}

function permissionsOf(old: Status | undefined): number {
  return old?.kind === "file" ? old.mode & permissions : newMode;
}

function tagIf(status: Status | undefined): string | undefined {
  return status === undefined ? undefined : entityTagOf(status);
}
