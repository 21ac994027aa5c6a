/**
 * Owns the files of one machine in memory: folders, files with entity tags, and who is told of changes.
 * Does not own routes (files.ts), nor links and owners: it has none. It outlives an agent.
 */
import { BerthError } from "../../../src/protocol/errors.ts";
import type { FileView } from "../../../src/protocol/file.ts";
import type { Entries } from "../changes.ts";

export type File = { bytes: Uint8Array; mode: string; at: number; n: number };
export type Change = {
  path: string;
  what: "made" | "written" | "removed";
  kind: "file" | "folder";
};

const owner = { uid: 10_001, gid: 10_001 };

export class FakeTree {
  /** By path, the mode. */
  readonly folders = new Map(
    ["/", "/workspace", "/tmp", "/usr", "/etc"].map((path) => [path, "755"] as const),
  ) as Map<string, string>;
  readonly files = new Map<string, File>();
  readonly watchers = new Set<(change: Change) => void>();
  #last = 0;

  view(path: string): FileView {
    const file = this.files.get(path);
    if (file !== undefined) {
      const { bytes, mode, at } = file;
      const rest = { size: bytes.length, mode, modifiedAt: new Date(at).toISOString() };
      return { path, kind: "file", ...owner, ...rest, etag: tagOf(file) };
    }
    const mode = this.folders.get(path);
    if (mode === undefined) throw notThere(path);
    return { path, kind: "folder", size: 0, mode, ...owner, modifiedAt: new Date(0).toISOString() };
  }

  file(path: string): File {
    const file = this.files.get(path);
    if (file !== undefined) return file;
    if (this.folders.has(path)) throw notAFile(path);
    throw notThere(path);
  }

  /** Throws unless a file can be there. */
  demandPlace(path: string, mkdirs = false): void {
    if (this.folders.has(path)) throw notAFile(path);
    if (mkdirs) this.makeFolders(holderOf(path));
    if (this.folders.has(holderOf(path))) return;
    if (this.files.has(holderOf(path))) throw notAFolder(holderOf(path));
    throw notThere(holderOf(path));
  }

  write(path: string, bytes: Uint8Array, mode: string | undefined): void {
    const old = this.files.get(path);
    const n = ++this.#last;
    this.files.set(path, { bytes, mode: mode ?? old?.mode ?? "644", at: Date.now(), n });
    this.#tell({ path, what: old === undefined ? "made" : "written", kind: "file" });
  }

  makeFolders(path: string): void {
    if (this.files.has(path)) throw notAFolder(path);
    if (this.folders.has(path)) return;
    this.makeFolders(holderOf(path));
    this.makeFolder(path);
  }

  makeFolder(path: string, mode = "755"): void {
    this.folders.set(path, mode);
    this.#tell({ path, what: "made", kind: "folder" });
  }

  /** How many. */
  remove(path: string, recursive: boolean): number {
    const paths = [path, ...this.below(path)].filter((one) => this.has(one));
    if (paths.length === 0) throw notThere(path);
    if (paths.length > 1 && !recursive) {
      throw new BerthError("not_empty", `${path} is not empty`, { hint: "say recursive=true" });
    }
    for (const one of paths.reverse()) this.#drop(one);
    return paths.length;
  }

  move(from: string, to: string, overwrite: boolean): void {
    if (!this.has(from)) throw notThere(from);
    if (!this.folders.has(holderOf(to))) throw notThere(holderOf(to));
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
      this.#tell({ path: target, what: "made", kind });
    }
  }

  has(path: string): boolean {
    return this.files.has(path) || this.folders.has(path);
  }

  /** All of it, in the order of names. */
  below(path: string): string[] {
    const prefix = path === "/" ? "/" : `${path}/`;
    const all = [...this.files.keys(), ...this.folders.keys()];
    return all.filter((one) => one !== path && one.startsWith(prefix)).sort(byNames);
  }

  /** As it stands now; nobody watches it. */
  copy(): FakeTree {
    const copy = new FakeTree();
    copy.folders.clear();
    for (const [path, mode] of this.folders) copy.folders.set(path, mode);
    for (const [path, file] of this.files) copy.files.set(path, file);
    copy.#last = this.#last;
    return copy;
  }

  /** A folder and what it holds, as trees are compared. */
  entriesBelow(top: string): Entries {
    const entries: Entries = new Map();
    for (const path of [top, ...this.below(top)]) {
      const file = this.files.get(path);
      const bytes = file?.bytes ?? new Uint8Array();
      const name = rawOf(path.slice(top.length + 1));
      entries.set(name, {
        isFolder: file === undefined,
        says: `${file?.mode ?? this.folders.get(path)} ${bytes.join()}`,
        bytes: bytes.length,
      });
    }
    return entries;
  }

  #drop(path: string): void {
    const kind = this.files.delete(path) ? "file" : "folder";
    if (kind === "folder") this.folders.delete(path);
    this.#tell({ path, what: "removed", kind });
  }

  #tell(change: Change): void {
    for (const watcher of this.watchers) watcher(change);
  }
}

export function tagOf({ n, bytes }: File): string {
  return `"${n}-${bytes.length}"`;
}

export function holderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

export function notAFolder(path: string): BerthError {
  return new BerthError("not_a_folder", `${path} is no folder`, { facts: { field: "path", path } });
}

/** One character for each byte. */
function rawOf(path: string): string {
  return String.fromCharCode(...new TextEncoder().encode(path));
}

/** A folder before what it holds. */
function byNames(one: string, other: string): number {
  const [left, right] = [one.split("/"), other.split("/")];
  for (let at = 0; at < Math.min(left.length, right.length); at++) {
    const [a = "", b = ""] = [left[at], right[at]];
    if (a !== b) return a < b ? -1 : 1;
  }
  return left.length - right.length;
}

function notThere(path: string): BerthError {
  return new BerthError("file_not_found", `${path} is not there`, {
    facts: { field: "path", path },
  });
}

function notAFile(path: string): BerthError {
  return new BerthError("not_a_file", `${path} is a folder`, { facts: { field: "path", path } });
}
