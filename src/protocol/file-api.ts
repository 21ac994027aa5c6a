/**
 * Owns the part of the one interface of a sandbox that is about its files.
 * Does not own the rest of that interface (api.ts), nor how a call travels.
 *
 * Relative paths are below /workspace, or below the folder that the named session stands in.
 */
import type { GateOptions } from "./api.ts";
import type { ArchiveType, Unpacked } from "./archive.ts";
import type {
  FilesPage,
  FileView,
  ListQuery,
  MkdirInput,
  MoveInput,
  Removed,
  WatchQuery,
} from "./file.ts";
import type { CloneInput } from "./git.ts";

type At = { session?: string };

/**
 * A stream says how long it is: one that ends before that is known to be broken, and nothing is written; no more
 * than that is taken. To another Worker a stream is a ReadableStream.
 */
export type Content = Uint8Array | { stream: AsyncIterable<Uint8Array>; bytes: number };

export type FileContent = {
  etag: string;
  /** Of the whole file. */
  size: number;
  modifiedAt: string;
  /** The part that this is: `end` is the byte after its last one. */
  start: number;
  end: number;
  body: AsyncIterable<Uint8Array>;
};

export type ReadOptions = At & {
  /** From `start` to before `end`, or to the end of the file. */
  range?: { start: number; end?: number };
};

export type WriteOptions = GateOptions &
  At & {
    mkdirs?: boolean;
    mode?: string;
    /** Only in place of the file with this entity tag, or (`*`) of any. */
    ifMatch?: string;
    /** `*`: only where nothing is. */
    ifNoneMatch?: string;
  };

export interface FileApi {
  readFile(path: string, options?: ReadOptions): Promise<FileContent>;
  writeFile(path: string, content: Content, options?: WriteOptions): Promise<FileView>;
  removeFile(path: string, options?: GateOptions & At & { recursive?: boolean }): Promise<Removed>;
  stat(path: string, options?: At): Promise<FileView>;
  listFiles(query?: ListQuery): Promise<FilesPage>;
  mkdir(call: MkdirInput, options?: GateOptions): Promise<FileView>;
  move(call: MoveInput, options?: GateOptions): Promise<FileView>;
  /** Server-sent events. */
  watchFiles(
    query?: Omit<WatchQuery, "recursive"> & { recursive?: boolean },
  ): Promise<AsyncIterable<Uint8Array>>;
  downloadArchive(
    path: string,
    options?: At & { type?: ArchiveType },
  ): Promise<AsyncIterable<Uint8Array>>;
  uploadArchive(
    path: string,
    content: Content,
    options?: GateOptions & At & { type?: ArchiveType },
  ): Promise<Unpacked>;
  /** Server-sent events. */
  cloneRepository(call: CloneInput, options?: GateOptions): Promise<AsyncIterable<Uint8Array>>;
}
