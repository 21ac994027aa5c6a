/** Reads and writes files by E2B's plain HTTP: bytes, forms with many files, and compressed uploads. */
import { posix } from "node:path";
import type { ApiCalls } from "../api-calls.ts";
import { ApiRefusal } from "../api-calls.ts";
import { isKnownUser } from "./daemon.ts";
import { isSandboxGone, WireError } from "./errors.ts";
import { formBoundary, readForm } from "./multipart.ts";
import { resolvePath } from "./paths.ts";

const passedDown = ["range", "if-none-match", "if-modified-since", "if-range"];
const types: Record<string, string> = {
  ...{ ".txt": "text/plain; charset=utf-8", ".html": "text/html; charset=utf-8" },
  ...{ ".json": "application/json", ".css": "text/css; charset=utf-8", ".png": "image/png" },
  ...{ ".jpg": "image/jpeg", ".svg": "image/svg+xml", ".pdf": "application/pdf" },
};
/** A part that is no longer is sent with its length; a longer one replaces its file when all of it has come. */
const partBytesMax = 4 * 1024 * 1024;
const writeBytesMin = 256 * 1024;

export async function readFile(
  calls: ApiCalls,
  sandbox: string,
  request: Request,
): Promise<Response> {
  const query = new URL(request.url).searchParams;
  refuseOtherUser(query);
  const path = resolvePath(query.get("path") ?? "");
  const headers = new Headers();
  for (const name of passedDown) {
    const value = request.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  const url = `/v1/sandboxes/${sandbox}/files?${new URLSearchParams({ path })}`;
  const response = await calls.send(url, { headers }).catch((thrown: unknown) => {
    throw fileError(thrown, path);
  });
  const answered = new Headers(response.headers);
  const type = types[posix.extname(path).toLowerCase()] ?? "application/octet-stream";
  answered.set("content-type", type);
  const name = encodeURIComponent(posix.basename(path));
  answered.set("content-disposition", `inline; filename*=UTF-8''${name}`);
  return new Response(response.body, { status: response.status, headers: answered });
}

export async function writeFiles(
  calls: ApiCalls,
  sandbox: string,
  request: Request,
): Promise<Response> {
  const { searchParams: query } = new URL(request.url);
  refuseOtherUser(query);
  if ([...request.headers.keys()].some((name) => name.startsWith("x-metadata-"))) {
    throw new WireError(400, "metadata of files is not kept here");
  }
  const writer = new Writer(calls, sandbox);
  const boundary = formBoundary(request.headers.get("content-type"));
  const body = request.body === null ? undefined : decompress(request.body, request.headers);
  const path = query.get("path");
  if (boundary === undefined) {
    if (path === null || path === "") throw new WireError(400, "path is missing");
    const length = request.headers.has("content-encoding")
      ? null
      : request.headers.get("content-length");
    if (body === undefined || length === "0") await writer.put(path, new Uint8Array(0));
    else if (length === null) await writer.putUnknownLength(path, chunksOf(body));
    else await writer.put(path, body, length);
  } else if (body !== undefined) {
    for await (const part of readForm(chunksOf(body), boundary)) {
      if (part.name !== "file") continue;
      const target = path === null || path === "" ? part.filename : path;
      if (target === undefined || target === "") throw new WireError(400, "a part has no filename");
      await writer.putUnknownLength(target, part.chunks);
    }
  }
  if (writer.written.length === 0) throw new WireError(400, "the form has no part named file");
  return Response.json(writer.written);
}

class Writer {
  readonly written: { path: string; name: string; type: "file" }[] = [];
  readonly #calls: ApiCalls;
  readonly #base: string;

  constructor(calls: ApiCalls, sandbox: string) {
    this.#calls = calls;
    this.#base = `/v1/sandboxes/${sandbox}/files`;
  }

  async put(
    given: string,
    body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>,
    length?: string,
  ): Promise<void> {
    const path = resolvePath(given);
    await this.#send(path, path, body, length);
    this.#remember(path);
  }

  /** Nothing replaces the file until the last byte has come. */
  async putUnknownLength(given: string, chunks: AsyncIterator<Uint8Array>): Promise<void> {
    const path = resolvePath(given);
    const held: Uint8Array[] = [];
    let bytes = 0;
    for (;;) {
      const { done, value } = await chunks.next();
      if (done) {
        await this.#send(path, path, new Uint8Array(Buffer.concat(held)));
        this.#remember(path);
        return;
      }
      held.push(value);
      bytes += value.length;
      if (bytes > partBytesMax) break;
    }
    await this.#sendInParts(path, held, chunks);
    this.#remember(path);
  }

  async #sendInParts(
    path: string,
    held: Uint8Array[],
    chunks: AsyncIterator<Uint8Array>,
  ): Promise<void> {
    const draft = `${posix.dirname(path)}/.${crypto.randomUUID()}.upload`;
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const sending = this.#send(draft, path, readable);
    try {
      await Promise.all([sending, pump(held, chunks, writable)]);
      const to = { from: draft, to: path, overwrite: true };
      await this.#calls.json("POST", `${this.#base}/move`, to);
    } catch (thrown) {
      await sending.catch(() => undefined);
      const query = new URLSearchParams({ path: draft });
      await this.#calls.json("DELETE", `${this.#base}?${query}`).catch(() => undefined);
      throw fileError(thrown, path);
    }
  }

  async #send(
    to: string,
    shown: string,
    body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>,
    length?: string,
  ): Promise<void> {
    const query = new URLSearchParams({ path: to, mkdirs: "1" });
    const headers = {
      "content-type": "application/octet-stream",
      ...(length === undefined ? {} : { "content-length": length }),
    };
    const init = { method: "PUT", body, headers, duplex: "half" } as RequestInit;
    const response = await this.#calls
      .send(`${this.#base}?${query}`, init)
      .catch((thrown: unknown) => {
        throw fileError(thrown, shown);
      });
    await response.body?.cancel();
  }

  #remember(path: string): void {
    this.written.push({ path, name: posix.basename(path), type: "file" });
  }
}

async function pump(
  held: Uint8Array[],
  chunks: AsyncIterator<Uint8Array>,
  writable: WritableStream<Uint8Array>,
): Promise<void> {
  const writer = writable.getWriter();
  try {
    let waiting = held;
    let bytes = Number.POSITIVE_INFINITY;
    for (;;) {
      // Each write crosses to the object: few large ones cost less than many small ones.
      if (bytes >= writeBytesMin) {
        await writer.write(Buffer.concat(waiting));
        [waiting, bytes] = [[], 0];
      }
      const { done, value } = await chunks.next();
      if (done) break;
      waiting.push(value);
      bytes += value.length;
    }
    if (waiting.length > 0) await writer.write(Buffer.concat(waiting));
    await writer.close();
  } catch (thrown) {
    await writer.abort(thrown).catch(() => undefined);
    throw thrown;
  }
}

function fileError(thrown: unknown, path: string): unknown {
  if (!(thrown instanceof ApiRefusal) || isSandboxGone(thrown)) return thrown;
  switch (thrown.code) {
    case "file_not_found":
      return new WireError(404, `path '${path}' does not exist`);
    case "not_a_file":
    case "not_a_folder":
      return new WireError(400, `path '${path}' is not a file`);
    default:
      return thrown;
  }
}

function refuseOtherUser(query: URLSearchParams): void {
  const user = query.get("username") ?? "";
  if (!isKnownUser(user)) throw new WireError(401, `invalid username: '${user}'`);
}

function decompress(
  body: ReadableStream<Uint8Array>,
  headers: Headers,
): ReadableStream<Uint8Array> {
  const encoding = headers.get("content-encoding")?.trim().toLowerCase() ?? "identity";
  if (encoding === "identity") return body;
  if (encoding !== "gzip") throw new WireError(400, `content-encoding ${encoding} is unknown`);
  return body.pipeThrough(new DecompressionStream("gzip") as never);
}

async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(() => {
        throw new WireError(400, "the body ended early, or is not what its encoding says");
      });
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}
