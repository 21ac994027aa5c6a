/**
 * The content of a streamed response: read once, counted, and with a lost connection reported as an error. Ending the
 * iteration early, or disposing of it unread, ends the call.
 */
import { BerthError } from "../../protocol/error-codes.ts";
import type { HttpClient, HttpRequest } from "./request.ts";
import { withTimeout } from "./timing.ts";
import type { TellProgress } from "./upload.ts";

export type DownloadOptions = {
  signal?: AbortSignal | undefined;
  progress?: TellProgress | undefined;
  /** The total size, where it is known. */
  total?: number;
  /** How long to wait for the next bytes. Default: by the type of the content. The time that the reader takes between two reads does not count. */
  idleTimeoutMs?: number;
};

const defaultIdleTimeoutMs = 60_000;
/** The server sends an event or a keepalive at least every 10 s. */
const eventsIdleTimeoutMs = 30_000;

export async function openDownload(
  client: HttpClient,
  request: HttpRequest,
  options: DownloadOptions = {},
): Promise<Download> {
  return new Download(await client.openStream(request), { signal: client.signal, ...options });
}

type Chunk = IteratorResult<Uint8Array<ArrayBuffer>, undefined>;

export class Download implements AsyncIterableIterator<Uint8Array<ArrayBuffer>>, AsyncDisposable {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  readonly #requestId: string | undefined;
  readonly #options: DownloadOptions;
  readonly #idleTimeoutMs: number;
  #bytes = 0;

  constructor({ body, headers }: Response, options: DownloadOptions = {}) {
    this.#reader = body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined;
    this.#requestId = headers.get("berth-request-id") ?? undefined;
    this.#options = options;
    const isEvents = headers.get("content-type")?.startsWith("text/event-stream") === true;
    const usualIdleMs = isEvents ? eventsIdleTimeoutMs : defaultIdleTimeoutMs;
    this.#idleTimeoutMs = options.idleTimeoutMs ?? usualIdleMs;
  }

  async next(): Promise<Chunk> {
    if (this.#reader === undefined) return end;
    const { signal } = this.#options;
    const idleMs = this.#idleTimeoutMs;
    const timeoutError = () => new Error(`no bytes for ${idleMs} ms`);
    const read = withTimeout(this.#reader.read(), idleMs, timeoutError, signal);
    const { done, value } = await read.catch((thrown: unknown) => {
      void this.return();
      signal?.throwIfAborted();
      throw this.#interrupted(thrown);
    });
    if (done || value === undefined) return end;
    this.#bytes += value.byteLength;
    this.#options.progress?.({ bytes: this.#bytes, total: this.#options.total ?? 0 });
    return { done: false, value: value as Uint8Array<ArrayBuffer> };
  }

  async return(): Promise<Chunk> {
    await this.#reader?.cancel().catch(() => undefined);
    return end;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  #interrupted(thrown: unknown): BerthError {
    const reason = thrown instanceof Error ? `: ${thrown.message}` : "";
    const bytes = this.#bytes;
    const message = `The response ended early, after ${bytes} bytes${reason}.`;
    return new BerthError("unavailable", message, {
      facts: { bytes },
      hint: "Reading changes nothing: read it again, or continue from that offset.",
      requestId: this.#requestId,
    });
  }
}

const end: Chunk = { done: true, value: undefined };
