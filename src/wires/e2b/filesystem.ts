/** Serves E2B's calls on folders and entries. */
import { posix } from "node:path";
import type { FilesPage, FileView } from "../../protocol/file.ts";
import { limits } from "../../protocol/limits.ts";
import { ApiRefusal } from "../api-calls.ts";
import { ConnectError } from "./connect-framing.ts";
import type { DaemonCall } from "./daemon.ts";
import { resolvePath } from "./paths.ts";

const linksMax = 8;
const entriesMax = 50_000;
/** The one user of a sandbox has this name for clients. */
const names: Record<number, string> = { 0: "root", 10001: "user" };
const owner = (id: number) => names[id] ?? String(id);

export async function stat(call: DaemonCall): Promise<unknown> {
  const path = pathOf(call.message, "path");
  return { entry: await entryOf(call, await read(call, path)) };
}

export async function makeDir(call: DaemonCall): Promise<unknown> {
  const path = pathOf(call.message, "path");
  const response = await call.calls
    .send(filesPath(call, "/mkdir"), jsonPost({ path, parents: true }))
    .catch((thrown: unknown) => {
      if (thrown instanceof ApiRefusal && /^(file_exists|not_a_folder)$/.test(thrown.code)) {
        throw new ConnectError("invalid_argument", `path '${path}' is not a folder`);
      }
      throw thrown;
    });
  const made = (await response.json()) as FileView;
  if (response.status === 200) {
    throw new ConnectError("already_exists", `folder '${path}' exists already`);
  }
  return { entry: await entryOf(call, made) };
}

export async function move(call: DaemonCall): Promise<unknown> {
  const [from, to] = [pathOf(call.message, "source"), pathOf(call.message, "destination")];
  await read(call, from);
  const parent = posix.dirname(to);
  await call.calls.send(filesPath(call, "/mkdir"), jsonPost({ path: parent, parents: true }));
  const moved = await call.calls.json<FileView>("POST", filesPath(call, "/move"), {
    ...{ from, to },
    overwrite: true,
  });
  return { entry: await entryOf(call, moved) };
}

/** What is not there is removed already. */
export async function remove(call: DaemonCall): Promise<unknown> {
  const query = new URLSearchParams({ path: pathOf(call.message, "path"), recursive: "1" });
  await call.calls.unless(
    "file_not_found",
    call.calls.json("DELETE", `${filesPath(call, "")}?${query}`),
  );
  return {};
}

export async function listDir(call: DaemonCall): Promise<unknown> {
  const path = pathOf(call.message, "path");
  const { depth = 1 } = call.message;
  if (typeof depth !== "number" || !Number.isInteger(depth) || depth < 0) {
    throw new ConnectError("invalid_argument", "depth must be a whole number");
  }
  const levels = Math.min(Math.max(depth, 1), limits.fileListDepthMax);
  const query = new URLSearchParams({ path, depth: String(levels), limit: "1000" });
  const files: FileView[] = [];
  for (;;) {
    const page = await call.calls.json<FilesPage>("GET", `${filesPath(call, "/list")}?${query}`);
    files.push(...page.files);
    if (page.nextCursor === null) break;
    if (files.length > entriesMax) {
      throw new ConnectError("resource_exhausted", `the folder has over ${entriesMax} entries`);
    }
    query.set("cursor", page.nextCursor);
  }
  files.sort(byDepthFirst);
  const entries: object[] = [];
  for (const file of files) entries.push(await entryOf(call, file));
  return { entries };
}

/** A folder comes before what is in it, and names are compared by their bytes. */
function byDepthFirst(a: FileView, b: FileView): number {
  const [these, those] = [a.path.split("/"), b.path.split("/")];
  for (const [index, part] of these.entries()) {
    const other = those[index];
    if (other === undefined) return 1;
    if (part !== other) return Buffer.compare(Buffer.from(part), Buffer.from(other));
  }
  return these.length - those.length;
}

function read(call: DaemonCall, path: string): Promise<FileView> {
  const query = new URLSearchParams({ path });
  return call.calls.json<FileView>("GET", `${filesPath(call, "/stat")}?${query}`);
}

/** Type and mode of a link are those of what it leads to; size and permissions are its own. */
export async function entryOf(call: DaemonCall, file: FileView): Promise<object> {
  const target = file.kind === "link" ? await follow(call, file) : file;
  const mode = Number.parseInt((target ?? file).mode, 8);
  return {
    name: posix.basename(file.path),
    type: typeOf(target?.kind),
    path: file.path,
    size: String(file.size),
    mode,
    permissions: permissionsOf(file),
    owner: owner(file.uid),
    group: owner(file.gid),
    modifiedTime: file.modifiedAt,
    ...(file.kind === "link" ? { symlinkTarget: target?.path ?? linkTarget(file) } : {}),
  };
}

/** Undefined: it leads nowhere. */
async function follow(call: DaemonCall, link: FileView): Promise<FileView | undefined> {
  let file: FileView | undefined = link;
  for (let count = 0; file?.kind === "link" && count < linksMax; count += 1) {
    file = await read(call, linkTarget(file)).catch((thrown: unknown) => {
      if (thrown instanceof ApiRefusal && thrown.code.startsWith("file_")) return undefined;
      if (thrown instanceof ApiRefusal && thrown.code === "not_a_folder") return undefined;
      throw thrown;
    });
  }
  return file?.kind === "link" ? undefined : file;
}

function linkTarget({ path, target = "" }: FileView): string {
  return posix.resolve(posix.dirname(path), target);
}

function typeOf(kind: FileView["kind"] | undefined): string {
  if (kind === "file") return "FILE_TYPE_FILE";
  return kind === "folder" ? "FILE_TYPE_DIRECTORY" : "FILE_TYPE_UNSPECIFIED";
}

function permissionsOf({ kind, mode }: FileView): string {
  const first = kind === "folder" ? "d" : kind === "link" ? "L" : "-";
  const bits = Number.parseInt(mode, 8);
  const shown = [..."rwxrwxrwx"].map((letter, index) => ((bits >> (8 - index)) & 1 ? letter : "-"));
  return first + shown.join("");
}

export function pathOf(message: Record<string, unknown>, field: string): string {
  const path = message[field] ?? "";
  if (typeof path === "string") return resolvePath(path);
  throw new ConnectError("invalid_argument", `${field} must be a path`);
}

function filesPath({ sandbox }: DaemonCall, part: string): string {
  return `/v1/sandboxes/${sandbox}/files${part}`;
}

function jsonPost(body: unknown): RequestInit {
  const headers = { "content-type": "application/json" };
  return { method: "POST", body: JSON.stringify(body), headers };
}
