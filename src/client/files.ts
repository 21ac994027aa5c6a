/**
 * Owns the verbs about files of a sandbox over REST: bytes as they are, up and down.
 * Does not own how a call is sent (link.ts).
 */
import type { GateOptions } from "../protocol/api.ts";
import type { ArchiveType } from "../protocol/archive.ts";
import type { FileApi, FileContent, ReadOptions, WriteOptions } from "../protocol/file-api.ts";
import { limits } from "../protocol/limits.ts";
import { Download, type DownloadOptions } from "./http/download.ts";
import { gatedRequest, type HttpClient, type HttpRequest, type Query } from "./http/request.ts";
import type { TellProgress, UploadContent } from "./http/upload.ts";

type Told = { progress?: TellProgress };
type At = { session?: string };

/** The same verbs; what carries bytes tells how far it is, and takes a Blob too. */
export interface ClientFileApi extends FileApi {
  readFile(path: string, options?: ReadOptions & Told): Promise<FileContent>;
  writeFile(
    path: string,
    content: UploadContent,
    options?: WriteOptions & Told,
  ): ReturnType<FileApi["writeFile"]>;
  downloadArchive(
    path: string,
    options?: At & { type?: ArchiveType } & Told,
  ): Promise<AsyncIterable<Uint8Array>>;
  uploadArchive(
    path: string,
    content: UploadContent,
    options?: GateOptions & At & { type?: ArchiveType } & Told,
  ): ReturnType<FileApi["uploadArchive"]>;
}

const bytesType = "application/octet-stream";
const tar = "application/x-tar";

export function filesOf(link: HttpClient, one: string): ClientFileApi {
  const files = `${one}/files`;
  const gated = (
    options: GateOptions,
    query: Query = {},
  ): Pick<HttpRequest, "headers" | "query"> => {
    const { headers, query: waking } = gatedRequest(options);
    return { headers: headers ?? {}, query: { ...query, ...waking } };
  };
  const stream = async (call: HttpRequest, progress?: TellProgress) =>
    new Download(await link.openStream(call), { signal: link.signal, progress });
  return {
    async readFile(path, { range, progress, ...at } = {}) {
      const headers = { range: range === undefined ? undefined : rangeText(range) };
      const response = await link.openStream({
        method: "GET",
        path: files,
        query: { path, ...at },
        headers,
      });
      return contentOf(response, { signal: link.signal, progress });
    },
    writeFile(path, content, options = {}) {
      const { ifMatch, ifNoneMatch, lease, waitMs, wake, progress, ...query } = options;
      const call = gated(gateOf({ lease, waitMs, wake }), { path, ...query });
      const headers = { ...call.headers, "if-match": ifMatch, "if-none-match": ifNoneMatch };
      const upload = { content, type: bytesType, progress };
      return link.request({ method: "PUT", path: files, ...call, headers, upload, ...uploading });
    },
    removeFile: (path, { lease, waitMs, wake, ...query } = {}) =>
      link.request({
        method: "DELETE",
        path: files,
        ...gated(gateOf({ lease, waitMs, wake }), { path, ...query }),
        ...walking,
      }),
    stat: (path, at = {}) =>
      link.request({ method: "GET", path: `${files}/stat`, query: { path, ...at } }),
    listFiles: (query = {}) =>
      link.request({ method: "GET", path: `${files}/list`, query: query as Query, ...walking }),
    mkdir: (body, options = {}) =>
      link.request({ method: "POST", path: `${files}/mkdir`, body, ...gated(options) }),
    move: (body, options = {}) =>
      link.request({ method: "POST", path: `${files}/move`, body, ...gated(options) }),
    watchFiles: (query = {}) => stream({ method: "GET", path: `${files}/watch`, query }),
    downloadArchive: (path, { type = tar, progress, ...at } = {}) =>
      stream(
        {
          method: "GET",
          path: `${one}/archive`,
          query: { path, ...at },
          headers: { accept: type },
        },
        progress,
      ),
    uploadArchive(path, content, options = {}) {
      const { type = tar, lease, waitMs, wake, progress, ...query } = options;
      const call = gated(gateOf({ lease, waitMs, wake }), { path, ...query });
      const upload = { content, type, progress };
      return link.request({ method: "PUT", path: `${one}/archive`, ...call, upload, ...uploading });
    },
    cloneRepository: (body, options = {}) =>
      stream({ method: "POST", path: `${one}/git/clone`, body, ...gated(options) }),
  };
}

/** The answer begins when all of it is there. */
const uploading = { responseTimeoutMs: limits.uploadMs };
/** Looking through or removing the largest tree. */
const walking = { responseTimeoutMs: limits.fileCallMs + 60_000 };

type Given = { [Name in keyof GateOptions]: GateOptions[Name] | undefined };

function gateOf(given: Given): GateOptions {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function rangeText({ start, end }: { start: number; end?: number }): string {
  return `bytes=${start}-${end === undefined ? "" : end - 1}`;
}

function contentOf(response: Response, options: DownloadOptions): FileContent {
  const { headers } = response;
  const part = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers.get("content-range") ?? "");
  const length = Number(headers.get("content-length"));
  const [start, end, size] =
    part === null ? [0, length, length] : [Number(part[1]), Number(part[2]) + 1, Number(part[3])];
  return {
    body: new Download(response, { ...options, total: end - start }),
    etag: headers.get("etag") ?? "",
    modifiedAt: new Date(headers.get("last-modified") ?? "").toISOString(),
    start,
    end,
    size,
  };
}
