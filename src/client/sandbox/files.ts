/** Files and folders of a sandbox. */
import type { FileContent } from "../../protocol/api.ts";
import type {
  ArchiveType,
  FileView as FileInfo,
  FilesPage,
  MkdirCall,
  MoveCall,
  Removed,
  Unpacked,
} from "../../protocol/file.ts";
import type { CallOptions, ChangeOptions } from "../http/request.ts";
import type { TellProgress, UploadContent } from "../http/upload.ts";
import { type Page, toPage } from "../page.ts";
import { type FileEvent, followFiles, type WatchOptions } from "../streams/files.ts";
import type { SandboxCalls } from "../verbs.ts";
import { collectBytes } from "./text.ts";

type InSession = {
  /** Relative paths are below the current folder of this session. Default: below /workspace. */
  session?: string | undefined;
};

type WithProgress = {
  /** Called as bytes are transferred. */
  progress?: TellProgress | undefined;
};

/** Options of reads. */
export type ReadOptions = CallOptions &
  InSession &
  WithProgress & {
    /** Bytes from `start` to `end` (exclusive), or to the end of the file. Default: the whole file. */
    range?: { start: number; end?: number } | undefined;
  };

/** Options of `files.write`. */
export type WriteOptions = ChangeOptions &
  InSession &
  WithProgress & {
    /** Creates missing parent folders. Default: true. */
    mkdirs?: boolean | undefined;
    /** Octal mode such as `644`. Default: a replaced file keeps its mode, a new one has 644. */
    mode?: string | undefined;
    /** Writes only if the file has this `etag`, or with `*` only if it exists. Default: in any case. */
    ifMatch?: string | undefined;
    /** With `*`: writes only if the path does not exist. Default: in any case. */
    ifNoneMatch?: string | undefined;
  };

/** Options of `files.list`. */
export type FileListOptions = CallOptions &
  InSession & {
    /** 1: only the entries of the folder itself. Default: 1. */
    depth?: number | undefined;
    /** The most entries of the page. Default: 1000. */
    limit?: number | undefined;
    /** The `nextCursor` of the page before. Default: the first page. */
    cursor?: string | undefined;
  };

/** Options of archives. */
export type ArchiveOptions = InSession &
  WithProgress & {
    /** The compression, by its content type. Default: `application/x-tar`, which is none. */
    type?: ArchiveType | undefined;
  };

/**
 * Files and folders of a sandbox. Relative paths are below /workspace.
 *
 * @example
 * ```ts
 * await sandbox.files.write("app/hello.txt", "hello");
 * const text = await sandbox.files.readText("app/hello.txt");
 * for (const { path, size } of await sandbox.files.list("app")) console.log(path, size);
 * ```
 */
export class Files {
  readonly #calls: SandboxCalls;

  /** @internal */
  constructor(calls: SandboxCalls) {
    this.#calls = calls;
  }

  /** The bytes of a file. `stream` reads a large one in pieces. */
  async read(path: string, options: ReadOptions = {}): Promise<Uint8Array<ArrayBuffer>> {
    const { body } = await this.stream(path, options);
    return await collectBytes(body);
  }

  /** The text of a file, as UTF-8. */
  async readText(path: string, options: ReadOptions = {}): Promise<string> {
    return new TextDecoder().decode(await this.read(path, options));
  }

  /** A file in pieces, with its size, its time and the `etag` that `write` compares. The body can be read once. */
  stream(path: string, options: ReadOptions = {}): Promise<FileContent> {
    return this.#calls.readFile(path, given(options));
  }

  /**
   * Creates or replaces a file, completely or not at all. A string is text, which is written as UTF-8.
   *
   * @example
   * ```ts
   * await sandbox.files.write("data.bin", new Uint8Array([1, 2, 3]));
   * await sandbox.files.write("big.tar", { stream: createReadStream("big.tar"), bytes: statSync("big.tar").size });
   * ```
   */
  write(path: string, content: UploadContent, options: WriteOptions = {}): Promise<FileInfo> {
    return this.#calls.writeFile(path, content, given({ mkdirs: true, ...options }));
  }

  /** Removes a file, a link or a folder. A folder that is not empty needs `recursive`. */
  delete(
    path: string,
    options: ChangeOptions & InSession & { recursive?: boolean | undefined } = {},
  ): Promise<Removed> {
    return this.#calls.removeFile(path, given(options));
  }

  /** Kind, size, mode and time of a path. A link is described itself. */
  stat(path: string, options: CallOptions & InSession = {}): Promise<FileInfo> {
    return this.#calls.stat(path, given(options));
  }

  /** Whether there is anything at the path. */
  async exists(path: string, options: CallOptions & InSession = {}): Promise<boolean> {
    try {
      await this.stat(path, options);
      return true;
    } catch (error) {
      if ((error as { code?: unknown }).code === "file_not_found") return false;
      throw error;
    }
  }

  /** One page of the entries of a folder, ordered by the bytes of their names. */
  async list(path = ".", options: FileListOptions = {}): Promise<Page<FilesPage["files"][number]>> {
    const { files, nextCursor } = await this.#calls.listFiles({ path, ...given(options) });
    return toPage(files, { nextCursor });
  }

  /** Creates a folder with its parents. An existing folder is no error, unless `parents` is false. */
  mkdir(
    path: string,
    options: ChangeOptions & Partial<Pick<MkdirCall, "mode" | "parents" | "session">> = {},
  ): Promise<FileInfo> {
    const { mode, parents = true, session, ...call } = options;
    return this.#calls.mkdir(given({ path, mode, parents, session }), call);
  }

  /** Moves or renames in one step. An existing file at `to` is kept, unless `overwrite` is set. */
  move(
    from: string,
    to: string,
    options: ChangeOptions & Partial<Pick<MoveCall, "overwrite" | "session">> = {},
  ): Promise<FileInfo> {
    const { overwrite, session, ...call } = options;
    return this.#calls.move(given({ from, to, overwrite, session }), call);
  }

  /**
   * The changes below a folder, until the folder is removed. After a lost connection a `missed` event says that changes
   * may be missing: list the folder again.
   */
  watch(path = ".", options: Omit<WatchOptions, "path"> = {}): AsyncIterable<FileEvent> {
    return followFiles(this.#calls, { path, ...options });
  }

  /** A folder or a file as a tar. */
  downloadArchive(
    path: string,
    options: CallOptions & ArchiveOptions = {},
  ): Promise<AsyncIterable<Uint8Array>> {
    return this.#calls.downloadArchive(path, given(options));
  }

  /** Unpacks a tar into a folder. */
  uploadArchive(
    path: string,
    content: UploadContent,
    options: ChangeOptions & ArchiveOptions = {},
  ): Promise<Unpacked> {
    return this.#calls.uploadArchive(path, content, given(options));
  }
}

/** Without the fields that are undefined. */
function given<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]: NonNullable<Fields[Name]> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [Name in keyof Fields]: NonNullable<Fields[Name]> };
}
