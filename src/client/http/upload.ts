/**
 * Turns the content of an upload into a request body, with its length checked and progress reported.
 */

import type { Content } from "../../protocol/api.ts";
import { BerthError } from "../../protocol/error-codes.ts";

/**
 * Text, bytes, a stream of known length, or a Blob or File, which browsers read from disk. Text is sent as UTF-8.
 *
 * @example
 * ```ts
 * await sandbox.files.write("hello.txt", "hello");
 * await sandbox.files.write("data.bin", new Uint8Array([1, 2, 3]));
 * await sandbox.files.write("big.tar", { stream: createReadStream("big.tar"), bytes: statSync("big.tar").size });
 * const { body, size } = await sandbox.files.stream("data.bin");
 * for await (const bytes of body) console.log(bytes.byteLength, "of", size);
 * ```
 */
export type UploadContent = Content | Blob | string;

/** `bytes` of `total` were transferred; a `total` of 0 means that it is unknown. */
export type Progress = { bytes: number; total: number };
/** Called as an upload or a download proceeds. */
export type TellProgress = (progress: Progress) => void;

export type Upload = {
  content: UploadContent;
  type: string;
  progress?: TellProgress | undefined;
};

export type UploadBody = {
  body: BodyInit;
  /** Set where `fetch` needs a `content-length` header for a stream. */
  length?: number;
  isStream: boolean;
  /** Why reading the body failed, if it did: `fetch` only says that something failed. */
  broken?(): unknown;
  /** Call it once the response is there: a body that is not streamed reports its progress only then. */
  arrived?(): void;
  /** Call it when the call is over: closes the source, whether it was read to its end or not. */
  end?(): void;
};

/** The chunk size of content that is all in memory, so that progress can be reported. */
const chunkBytes = 64 * 1024;

type Sized = new (bytes: number) => TransformStream<Uint8Array, Uint8Array>;

/** Content in memory can be sent again; a stream cannot. */
export function isReplayable(upload: Upload | undefined): boolean {
  if (upload === undefined || typeof upload.content === "string") return true;
  return upload.content instanceof Uint8Array || upload.content instanceof Blob;
}

export async function toUploadBody({ content: given, progress }: Upload): Promise<UploadBody> {
  const content = typeof given === "string" ? new TextEncoder().encode(given) : given;
  if (content instanceof Uint8Array || content instanceof Blob) {
    const total = sizeOf(content);
    if (progress === undefined || !canStream()) return unstreamedBody(content, total, progress);
    return streamedBody(splitContent(content), total, progress);
  }
  const { stream, bytes } = content;
  if (canStream()) return streamedBody(stream, bytes, progress);
  return unstreamedBody(await collectBlob(stream, bytes), bytes, progress);
}

function sizeOf(content: Uint8Array | Blob): number {
  return content instanceof Uint8Array ? content.byteLength : content.size;
}

/**
 * Browsers stream a request over HTTP/2 only, if at all. There the content is sent as a Blob, which they keep on disk.
 */
function canStream(): boolean {
  return !("window" in globalThis || "importScripts" in globalThis);
}

function unstreamedBody(
  content: Uint8Array | Blob,
  total: number,
  progress: TellProgress | undefined,
): UploadBody {
  progress?.({ bytes: 0, total });
  const arrived = () => progress?.({ bytes: total, total });
  return { body: content as BodyInit, isStream: false, arrived };
}

function streamedBody(
  source: AsyncIterable<Uint8Array>,
  total: number,
  progress: TellProgress | undefined,
): UploadBody {
  const { stream, ...ends } = countBytes(source, total, progress);
  // In a Worker a stream without a length would seem to end normally where it fails.
  const { FixedLengthStream } = globalThis as { FixedLengthStream?: Sized };
  if (FixedLengthStream === undefined) {
    return { body: stream, length: total, isStream: true, ...ends };
  }
  const { readable, writable } = new FixedLengthStream(total);
  stream.pipeTo(writable).catch(() => undefined);
  return { body: readable, isStream: true, ...ends };
}

/** Fails unless exactly `total` bytes come: an upload that ends early must not look complete. */
function countBytes(
  source: AsyncIterable<Uint8Array>,
  total: number,
  progress: TellProgress | undefined,
): Pick<UploadBody, "broken" | "end"> & { stream: ReadableStream<Uint8Array> } {
  const chunks = source[Symbol.asyncIterator]();
  let bytes = 0;
  let failure: unknown;
  let isOver = false;
  let control: ReadableStreamDefaultController<Uint8Array> | undefined;
  const end = () => {
    if (isOver) return;
    isOver = true;
    // Node continues to read after its fetch was aborted.
    control?.error(new Error("the call is over"));
    Promise.resolve(chunks.return?.()).catch(() => undefined);
  };
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    try {
      const { done, value } = await chunks.next();
      if (isOver) return;
      bytes += done ? 0 : value.byteLength;
      if (done ? bytes < total : bytes > total) throw lengthMismatch(bytes, total);
      if (done) {
        isOver = true;
        return controller.close();
      }
      controller.enqueue(value);
      progress?.({ bytes, total });
    } catch (error) {
      failure = error;
      end();
    }
  };
  const start = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    control = controller;
  };
  const stream = new ReadableStream<Uint8Array>({ start, pull, cancel: end }, { highWaterMark: 0 });
  return { stream, end, broken: () => failure };
}

function lengthMismatch(actual: number, total: number): BerthError {
  const how = actual > total ? "brought more" : `ended after ${actual}`;
  return new BerthError("bad_request", `Upload declared ${total} bytes but ${how}.`, {
    facts: { field: "bytes" },
    hint: "Set `bytes` to the exact length of the stream.",
  });
}

async function* splitContent(content: Uint8Array | Blob): AsyncGenerator<Uint8Array> {
  const length = sizeOf(content);
  for (let offset = 0; offset < length; offset += chunkBytes) {
    const end = Math.min(offset + chunkBytes, length);
    if (content instanceof Uint8Array) yield content.subarray(offset, end);
    else yield new Uint8Array(await content.slice(offset, end).arrayBuffer());
  }
}

async function collectBlob(source: AsyncIterable<Uint8Array>, total: number): Promise<Blob> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  for await (const chunk of source) {
    bytes += chunk.byteLength;
    if (bytes > total) throw lengthMismatch(bytes, total);
    chunks.push(chunk.slice() as Uint8Array<ArrayBuffer>);
  }
  if (bytes < total) throw lengthMismatch(bytes, total);
  return new Blob(chunks);
}
