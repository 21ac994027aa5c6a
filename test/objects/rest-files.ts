/**
 * Owns the verbs about files of a sandbox over REST, for the contract suite.
 * Does not own asking: rest-api.ts does.
 */
import type { GateOptions } from "../../src/protocol/api.ts";
import type { ErrorBody } from "../../src/protocol/errors.ts";
import type { Content, FileApi, FileContent } from "../../src/protocol/file-api.ts";
import { type Call, failureOf } from "./rest-api.ts";
import { type Ask, type Asked, gate, queryOf } from "./rest-work.ts";

export function restFiles(ask: Ask, call: Call, one: string): FileApi {
  const files = `${one}/files`;
  const send = async (
    method: string,
    path: string,
    sent: { body?: unknown; headers?: Record<string, string> } = {},
  ) => {
    const response = await call(method, path, sent);
    if (response.ok) return response;
    throw failureOf((await response.json()) as ErrorBody);
  };
  const stream = async (...sent: Parameters<typeof send>) => bodyOf(await send(...sent));
  const put = async <T>(
    path: string,
    content: Content,
    headers: Record<string, string | undefined>,
  ): Promise<T> => {
    const given = Object.entries(headers).filter(([, value]) => value !== undefined);
    const known = Object.fromEntries(given) as Record<string, string>;
    const body = content instanceof Uint8Array ? content : sized(content);
    return (await send("PUT", path, { body, headers: known })).json() as T;
  };
  return {
    async readFile(path, { range, ...at } = {}) {
      const headers: Record<string, string> =
        range === undefined
          ? {}
          : { range: `bytes=${range.start}-${range.end === undefined ? "" : range.end - 1}` };
      return contentOf(await send("GET", `${files}${queryOf({ path, ...at })}`, { headers }));
    },
    writeFile(path, content, { ifMatch, ifNoneMatch, lease, waitMs, ...query } = {}) {
      return put(`${files}${queryOf({ path, ...query })}`, content, {
        ...gate(gateOf({ lease, waitMs })),
        "content-type": "application/octet-stream",
        "if-match": ifMatch,
        "if-none-match": ifNoneMatch,
      });
    },
    removeFile: (path, { lease, waitMs, ...query } = {}) =>
      ask("DELETE", `${files}${queryOf({ path, ...query })}`, {
        headers: gate(gateOf({ lease, waitMs })),
      }),
    stat: (path, at = {}) => ask("GET", `${files}/stat${queryOf({ path, ...at })}`),
    listFiles: (query = {}) => ask("GET", `${files}/list${queryOf(query as Asked)}`),
    mkdir: (body, { wake, ...options } = {}) =>
      ask("POST", `${files}/mkdir${queryOf({ wake })}`, { body, headers: gate(options) }),
    move: (body, { wake, ...options } = {}) =>
      ask("POST", `${files}/move${queryOf({ wake })}`, { body, headers: gate(options) }),
    watchFiles: (query = {}) => stream("GET", `${files}/watch${queryOf(query)}`),
    downloadArchive: (path, { type = "application/x-tar", ...at } = {}) =>
      stream("GET", `${one}/archive${queryOf({ path, ...at })}`, { headers: { accept: type } }),
    uploadArchive(path, content, { type = "application/x-tar", lease, waitMs, ...query } = {}) {
      return put(`${one}/archive${queryOf({ path, ...query })}`, content, {
        ...gate(gateOf({ lease, waitMs })),
        "content-type": type,
      });
    },
    cloneRepository: (body, { wake, ...options } = {}) =>
      stream("POST", `${one}/git/clone${queryOf({ wake })}`, { body, headers: gate(options) }),
  };
}

type Sized = new (bytes: number) => TransformStream<Uint8Array, Uint8Array>;

/** Within one workerd a request's stream without a length would end where it breaks off. */
function sized({ stream, bytes }: Exclude<Content, Uint8Array>): AsyncIterable<Uint8Array> {
  const { FixedLengthStream } = globalThis as { FixedLengthStream?: Sized };
  if (FixedLengthStream === undefined) return stream;
  const { readable, writable } = new FixedLengthStream(bytes);
  (stream as ReadableStream<Uint8Array>).pipeTo(writable).catch(() => undefined);
  return readable;
}

function gateOf({ lease, waitMs }: { lease: string | undefined; waitMs: number | undefined }) {
  const given: GateOptions = {};
  if (lease !== undefined) given.lease = lease;
  if (waitMs !== undefined) given.waitMs = waitMs;
  return given;
}

function contentOf(response: Response): FileContent {
  const { headers } = response;
  const part = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers.get("content-range") ?? "");
  const length = Number(headers.get("content-length"));
  const [start, end, size] =
    part === null ? [0, length, length] : [Number(part[1]), Number(part[2]) + 1, Number(part[3])];
  return {
    body: bodyOf(response),
    etag: headers.get("etag") ?? "",
    modifiedAt: new Date(headers.get("last-modified") ?? "").toISOString(),
    start,
    end,
    size,
  };
}

function bodyOf({ body }: Response): ReadableStream<Uint8Array> {
  return body ?? new Blob([]).stream();
}
