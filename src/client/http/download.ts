/**
 * Owns the content of an answer that streams: as it comes, counted, a broken connection told as such.
 * Read once. Whoever stops reading, or disposes of it unread, ends the call.
 */
import { BerthError } from "../../protocol/error-codes.ts";
import type { TellProgress } from "./upload.ts";
import { unlessAborted } from "./whole-body.ts";

export type DownloadOptions = {
  signal?: AbortSignal | undefined;
  progress?: TellProgress | undefined;
  /** All that will come, where that is known. */
  total?: number;
  /** How long a reader waits for the next bytes. Whoever reads slowly is not counted. */
  silenceMs?: number;
};

/** What streams brings bytes, or says every 10 s that it lives. */
const silenceUsualMs = 60_000;

type Piece = IteratorResult<Uint8Array<ArrayBuffer>, undefined>;

export class Download implements AsyncIterableIterator<Uint8Array<ArrayBuffer>>, AsyncDisposable {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  readonly #requestId: string | null;
  readonly #options: DownloadOptions;
  #bytes = 0;

  constructor({ body, headers }: Response, options: DownloadOptions = {}) {
    this.#reader = body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined;
    this.#requestId = headers.get("berth-request-id");
    this.#options = options;
  }

  async next(): Promise<Piece> {
    if (this.#reader === undefined) return over;
    const { done, value } = await this.#heard(this.#reader.read()).catch((thrown: unknown) => {
      void this.return();
      this.#options.signal?.throwIfAborted();
      throw this.#brokeOff(thrown);
    });
    if (done || value === undefined) return over;
    this.#bytes += value.byteLength;
    this.#options.progress?.({ bytes: this.#bytes, total: this.#options.total ?? 0 });
    return { done: false, value: value as Uint8Array<ArrayBuffer> };
  }

  async return(): Promise<Piece> {
    await this.#reader?.cancel().catch(() => undefined);
    return over;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  async #heard<Read>(read: Promise<Read>): Promise<Read> {
    const { silenceMs = silenceUsualMs, signal } = this.#options;
    // A fetch that was given may look at it no more once the answer has begun.
    const unlessGivenUp = signal === undefined ? read : unlessAborted(read, signal);
    if (!Number.isFinite(silenceMs)) return await unlessGivenUp;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const silence = new Promise<never>((_resolve, reject) => {
      const late = new Error(`nothing came for ${silenceMs} ms`);
      timer = setTimeout(() => reject(late), silenceMs);
    });
    return await Promise.race([unlessGivenUp, silence]).finally(() => clearTimeout(timer));
  }

  #brokeOff(thrown: unknown): BerthError {
    const why = thrown instanceof Error ? `: ${thrown.message}` : "";
    const bytes = this.#bytes;
    return new BerthError("unavailable", `The answer broke off after ${bytes} bytes${why}.`, {
      facts: { bytes },
      hint: "Reading changes nothing: read it again, or go on from there.",
      ...(this.#requestId === null ? {} : { requestId: this.#requestId }),
    });
  }
}

const over: Piece = { done: true, value: undefined };
