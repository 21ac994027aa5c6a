/**
 * Owns writing one file whole or not at all: without a name at first, then put in its place (unfinished.ts).
 * Does not own the body (body.ts), conditions (conditions.ts), nor who may write now (turn.ts).
 */
import { fchmodSync, write } from "node:fs";
import { promisify } from "node:util";
import type { User } from "../kernel/libc.ts";
import { withRightsOf } from "../kernel/libc.ts";
import { close, type Status, statusAt } from "../kernel/openat.ts";
import { announcedBytes, bodyOf } from "./body.ts";
import { type Conditions, demandConditions } from "./conditions.ts";
import { holderOf, makeFolders } from "./folders.ts";
import type { Turn } from "./gated-write.ts";
import { type Entry, follow, openEntry, shownOf, type Target } from "./paths.ts";
import { isCode, notAFile, refusalOf } from "./refusal.ts";
import { Unfinished } from "./unfinished.ts";
import { tagOf, viewOf } from "./view.ts";

export type Upload = {
  target: Target;
  user: User | undefined;
  mkdirs: boolean;
  mode: string | undefined;
  conditions: Conditions;
};

const newMode = 0o644;
const permissions = 0o777;
const writeAsync = promisify(write);

export async function upload(request: Request, asked: Upload, turn: Turn): Promise<Response> {
  announcedBytes(request);
  const { target, user } = asked;
  let entry: Entry | undefined;
  let unfinished: Unfinished | undefined;
  try {
    const at = withRightsOf(user, () => findPlace(asked));
    entry = at;
    const fresh = withRightsOf(user, () => new Unfinished(at.folder));
    unfinished = fresh;
    for await (const bytes of bodyOf(request, turn.signal)) await writeAll(fresh.fd, bytes);
    const { status, isNew } = withRightsOf(user, () => {
      turn.pass();
      return takePlace(at, fresh, asked);
    });
    return Response.json(viewOf(shownOf(target, at), status), {
      status: isNew ? 201 : 200,
      headers: { etag: tagOf(status) },
    });
  } catch (error) {
    throw refusalOf(error, target.shown);
  } finally {
    withRightsOf(user, () => unfinished?.end());
    if (entry !== undefined) close(entry.folder);
  }
}

/** Before the body is read: most of what can be wrong is known here. */
function findPlace({ target, mkdirs, conditions }: Upload): Entry {
  const entry = follow(openHolder(target, mkdirs));
  try {
    demandConditions(conditions, tagIf(fileAt(entry, target.shown)), target.shown);
  } catch (error) {
    close(entry.folder);
    throw error;
  }
  return entry;
}

function openHolder(target: Target, mkdirs: boolean): Entry {
  try {
    return openEntry(target);
  } catch (error) {
    if (!mkdirs || !isCode(error, "ENOENT")) throw error;
  }
  makeFolders(holderOf(target.raw));
  return openEntry(target);
}

/** Undefined: nothing is there. */
function fileAt({ folder, name, asFolder }: Entry, shown: string): Status | undefined {
  if (asFolder || name === "" || name === "." || name === "..") throw notAFile(shown, "a folder");
  try {
    const status = statusAt(folder, name);
    if (status.kind === "folder") throw notAFile(shown, "a folder");
    if (status.kind === "other") throw notAFile(shown, "a device, pipe or socket");
    return status;
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

export async function writeAll(fd: number, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesWritten } = await writeAsync(fd, bytes, at, bytes.length - at, null);
    at += bytesWritten;
  }
}

/** One synchronous piece: what is there is looked at, and in the next moment replaced. */
function takePlace(
  entry: Entry,
  unfinished: Unfinished,
  { target, mode, conditions }: Upload,
): { status: Status; isNew: boolean } {
  const old = fileAt(entry, target.shown);
  demandConditions(conditions, tagIf(old), target.shown);
  const { fd } = unfinished;
  fchmodSync(fd, mode === undefined ? permissionsOf(old) : Number.parseInt(mode, 8));
  const overwrite = old !== undefined || conditions.noneMatch !== "*";
  unfinished.take(entry, { overwrite });
  return { status: statusAt(fd), isNew: old === undefined };
}

function permissionsOf(old: Status | undefined): number {
  return old?.kind === "file" ? old.mode & permissions : newMode;
}

function tagIf(status: Status | undefined): string | undefined {
  return status === undefined ? undefined : tagOf(status);
}
