/**
 * The files of one container in memory: folders, files with entity tags, and listeners for changes. It has no links
 * and owners, and survives its agent.
 */
import { BerthError } from "../../../src/protocol/errors.ts";
import type { FileView } from "../../../src/protocol/file.ts";
import type { TreeEntries } from "../changes.ts";

export type File = { bytes: Uint8Array; mode: string; modifiedAt: number; n: number };
export type Change = {
  path: string;
  what: "made" | "written" | "removed";
  kind: "file" | "folder";
};

const owner = { uid: 10_001, gid: 10_001 };

export class FakeTree {
  /** Modes by path. */
  readonly folders = new Map(
    ["/", "/workspace", "/tmp", "/usr", "/etc"].map((path) => [path, "755"] as const),
  ) as Map<string, string>;
  readonly files = new Map<string, File>();
  readonly listeners = new Set<(change: Change) => void>();
  #last = 0;

  view(path: string): FileView {
    const file = this.files.get(path);
    if (file !== undefined) {
      const modifiedAt = new Date(file.modifiedAt).toISOString();
      const rest = { size: file.bytes.length, mode: file.mode, modifiedAt };
      return { path, kind: "file", ...owner, ...rest, etag: tagOf(file) };
    }
    const mode = this.folders.get(path);
    if (mode === undefined) throw notFoundError(path);
    return { path, kind: "folder", size: 0, mode, ...owner, modifiedAt: new Date(0).toISOString() };
  }

  file(path: string): File {
    const file = this.files.get(path);
    if (file !== undefined) return file;
    if (this.folders.has(path)) throw notAFileError(path);
    throw notFoundError(path);
  }

  /** Throws unless a file can be written to the path. */
  refuseUnlessWritable(path: string, mkdirs = false): void {
    if (this.folders.has(path)) throw notAFileError(path);
    if (mkdirs) this.makeFolders(parentOf(path));
    if (this.folders.has(parentOf(path))) return;
    if (this.files.has(parentOf(path))) throw notAFolderError(parentOf(path));
    throw notFoundError(parentOf(path));
  }

  write(path: string, bytes: Uint8Array, mode: string | undefined): void {
    const old = this.files.get(path);
    const n = ++this.#last;
    this.files.set(path, { bytes, mode: mode ?? old?.mode ?? "644", modifiedAt: Date.now(), n });
    this.#notify({ path, what: old === undefined ? "made" : "written", kind: "file" });
  }

  makeFolders(path: string): void {
    if (this.files.has(path)) throw notAFolderError(path);
    if (this.folders.has(path)) return;
    this.makeFolders(parentOf(path));
    this.makeFolder(path);
  }

  makeFolder(path: string, mode = "755"): void {
    this.folders.set(path, mode);
    this.#notify({ path, what: "made", kind: "folder" });
  }

  /** Returns the number of removed entries. */
  remove(path: string, recursive: boolean): number {
    const paths = [path, ...this.below(path)].filter((entry) => this.has(entry));
    if (paths.length === 0) throw notFoundError(path);
    if (paths.length > 1 && !recursive) {
      throw new BerthError("not_empty", `${path} is not empty`, { hint: "say recursive=true" });
    }
    for (const entry of paths.reverse()) this.#drop(entry);
    return paths.length;
  }

  move(from: string, to: string, overwrite: boolean): void {
    if (!this.has(from)) throw notFoundError(from);
    if (!this.folders.has(parentOf(to))) throw notFoundError(parentOf(to));
    if (this.has(to)) {
      if (!overwrite) throw new BerthError("file_exists", `${to} is there already`);
      this.remove(to, false);
    }
    for (const path of [from, ...this.below(from)]) {
      const target = to + path.slice(from.length);
      const file = this.files.get(path);
      const mode = this.folders.get(path);
      this.#drop(path);
      if (file !== undefined) this.files.set(target, file);
      if (mode !== undefined) this.folders.set(target, mode);
      const kind = file === undefined ? "folder" : "file";
      this.#notify({ path: target, what: "made", kind });
    }
  }

  has(path: string): boolean {
    return this.files.has(path) || this.folders.has(path);
  }

  /** All paths below, in the order of names. */
  below(path: string): string[] {
    const prefix = path === "/" ? "/" : `${path}/`;
    const all = [...this.files.keys(), ...this.folders.keys()];
    return all.filter((other) => other !== path && other.startsWith(prefix)).sort(byNames);
  }

  /** A copy of the current state, without listeners. */
  copy(): FakeTree {
    const copy = new FakeTree();
    copy.folders.clear();
    for (const [path, mode] of this.folders) copy.folders.set(path, mode);
    for (const [path, file] of this.files) copy.files.set(path, file);
    copy.#last = this.#last;
    return copy;
  }

  /** A folder and its content, in the form in which trees are compared. */
  entriesBelow(top: string): TreeEntries {
    const entries: TreeEntries = new Map();
    for (const path of [top, ...this.below(top)]) {
      const file = this.files.get(path);
      const bytes = file?.bytes ?? new Uint8Array();
      const name = rawOf(path.slice(top.length + 1));
      entries.set(name, {
        isFolder: file === undefined,
        content: `${file?.mode ?? this.folders.get(path)} ${bytes.join()}`,
        bytes: bytes.length,
      });
    }
    return entries;
  }

  #drop(path: string): void {
    const kind = this.files.delete(path) ? "file" : "folder";
    if (kind === "folder") this.folders.delete(path);
    this.#notify({ path, what: "removed", kind });
  }

  #notify(change: Change): void {
    for (const watcher of this.listeners) watcher(change);
  }
}

export function tagOf({ n, bytes }: File): string {
  return `"${n}-${bytes.length}"`;
}

export function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

export function notAFolderError(path: string): BerthError {
  return new BerthError("not_a_folder", `${path} is no folder`, { facts: { field: "path", path } });
}

/** One character per byte. */
function rawOf(path: string): string {
  return String.fromCharCode(...new TextEncoder().encode(path));
}

/** A folder comes before its content. */
function byNames(path: string, other: string): number {
  const [left, right] = [path.split("/"), other.split("/")];
  for (let n = 0; n < Math.min(left.length, right.length); n++) {
    const [a = "", b = ""] = [left[n], right[n]];
    if (a !== b) return a < b ? -1 : 1;
  }
  return left.length - right.length;
}

function notFoundError(path: string): BerthError {
  return new BerthError("file_not_found", `${path} is not there`, {
    facts: { field: "path", path },
  });
}

function notAFileError(path: string): BerthError {
  return new BerthError("not_a_file", `${path} is a folder`, { facts: { field: "path", path } });
}
