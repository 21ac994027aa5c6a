/**
 * The methods of a sandbox that rows cannot describe: the lease by its token, metadata with a version, events and logs
 * as streams, and the bytes of files in either direction.
 */
import type {
  FileContent,
  GateOptions,
  ReadOptions,
  SandboxApi,
  WriteOptions,
} from "../protocol/api.ts";
import type { ArchiveType } from "../protocol/file.ts";
import { limits } from "../protocol/limits.ts";
import { Download, type DownloadOptions, openDownload } from "./http/download.ts";
import {
  gatedRequest,
  type HttpClient,
  type HttpRequest,
  pathSegment,
  type Query,
} from "./http/request.ts";
import type { TellProgress, Upload, UploadContent } from "./http/upload.ts";

type ProgressOptions = { progress?: TellProgress };
type InSession = { session?: string };

/** The methods of `SandboxApi`, with progress, and with a Blob as content. */
export interface ClientFileApi {
  readFile(path: string, options?: ReadOptions & ProgressOptions): Promise<FileContent>;
  writeFile(
    path: string,
    content: UploadContent,
    options?: WriteOptions & ProgressOptions,
  ): ReturnType<SandboxApi["writeFile"]>;
  downloadArchive(
    path: string,
    options?: InSession & { type?: ArchiveType } & ProgressOptions,
  ): Promise<AsyncIterable<Uint8Array>>;
  uploadArchive(
    path: string,
    content: UploadContent,
    options?: GateOptions & InSession & { type?: ArchiveType } & ProgressOptions,
  ): ReturnType<SandboxApi["uploadArchive"]>;
}

type SpecialMethods = Pick<
  SandboxApi,
  | "renewLease"
  | "releaseLease"
  | "breakLease"
  | "patchMetadata"
  | "replaceMetadata"
  | "events"
  | "streamEvents"
  | "processLogs"
> &
  ClientFileApi;

const bytesType = "application/octet-stream";
const tar = "application/x-tar";

export function specialMethods(client: HttpClient, id: string): SpecialMethods {
  const sandbox = `/v1/sandboxes/${pathSegment(id)}`;
  const lease = `${sandbox}/lease`;
  const metadata = `${sandbox}/metadata`;
  const files = `${sandbox}/files`;
  const archive = `${sandbox}/archive`;
  const ofHolder = (token: string) => ({
    path: lease,
    headers: { "berth-lease": token },
    isRepeatable: true,
  });
  return {
    renewLease: (token, body = {}) => client.request({ method: "PUT", ...ofHolder(token), body }),
    releaseLease: (token, { force = false } = {}) =>
      client.request({ method: "DELETE", ...ofHolder(token), query: { force } }),
    breakLease: (reason) =>
      client.request({ method: "DELETE", path: lease, query: { break: true, reason } }),
    patchMetadata: (body, { ifMatch } = {}) =>
      client.request({ method: "PATCH", path: metadata, body, headers: versionHeaders(ifMatch) }),
    replaceMetadata: (body, { ifMatch }) =>
      client.request({ method: "PUT", path: metadata, body, headers: versionHeaders(ifMatch) }),
    events: (query = {}) => client.request({ method: "GET", path: `${sandbox}/events`, query }),
    streamEvents: (query) => streamEvents(client, `${sandbox}/events`, query),
    processLogs(process, { follow = false, raw = false, ...query } = {}) {
      const request: HttpRequest = {
        method: "GET",
        path: `${sandbox}/processes/${pathSegment(process)}/logs`,
        query: { ...query, follow: Number(follow) },
        headers: { accept: raw ? "application/octet-stream" : "text/event-stream" },
      };
      // Raw bytes leave no room for a keepalive.
      const timeout = raw && follow ? { idleTimeoutMs: Number.POSITIVE_INFINITY } : {};
      return openDownload(client, request, timeout);
    },
    async readFile(path, { range, progress, ...options } = {}) {
      const response = await client.openStream({
        method: "GET",
        path: files,
        query: { path, ...options },
        headers: { range: range === undefined ? undefined : rangeText(range) },
      });
      return contentOf(response, { signal: client.signal, progress });
    },
    writeFile(path, content, { ifMatch, ifNoneMatch, progress, ...options } = {}) {
      const conditions = { "if-match": ifMatch, "if-none-match": ifNoneMatch };
      const upload = { content, type: bytesType, progress };
      return client.request(uploadRequest(files, { path, ...options }, upload, conditions));
    },
    downloadArchive(path, { type = tar, progress, ...options } = {}) {
      const query = { path, ...options };
      const headers = { accept: type };
      return openDownload(client, { method: "GET", path: archive, query, headers }, { progress });
    },
    uploadArchive(path, content, { type = tar, progress, ...options } = {}) {
      const upload = { content, type, progress };
      return client.request(uploadRequest(archive, { path, ...options }, upload));
    },
  };
}

/** The events after this number, as server-sent events. */
export function streamEvents(
  client: HttpClient,
  path: string,
  { after = 0 }: { after?: number } = {},
): Promise<AsyncIterable<Uint8Array>> {
  return openDownload(client, { method: "GET", path, query: { after, follow: 1 } });
}

function versionHeaders(version: number | undefined): Record<string, string | undefined> {
  return { "if-match": version === undefined ? undefined : `"${version}"` };
}

function uploadRequest(
  path: string,
  { lease, waitMs, wake, ...query }: GateOptions & Query,
  upload: Upload,
  conditions: HttpRequest["headers"] = {},
): HttpRequest {
  const gated = gatedRequest({ lease, waitMs, wake });
  return {
    method: "PUT",
    path,
    query: { ...query, ...gated.query },
    headers: { ...gated.headers, ...conditions },
    upload,
    // The response begins when the upload is complete.
    responseTimeoutMs: limits.uploadMs,
  };
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
