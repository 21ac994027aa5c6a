/**
 * Owns the bodies that carry bytes: what a caller gives as what fetch takes here, counted, with progress told.
 * Does not own which call they belong to.
 */
import { BerthError } from "../../protocol/error-codes.ts";
import type { Content } from "../../protocol/file-api.ts";

/** Also a Blob or File: browsers read those from disk. */
export type UploadContent = Content | Blob;

export type Progress = { bytes: number; total: number };
export type TellProgress = (progress: Progress) => void;

export type Upload = {
  content: UploadContent;
  type: string;
  progress?: TellProgress | undefined;
};

export type Outgoing = {
  body: BodyInit;
  /** Where fetch must be told of the length. */
  length?: number;
  isStream: boolean;
  /** Why the body broke off, if it did: fetch says only that something failed. */
  broken(): unknown;
  /** All of it was taken; what is sent whole cannot tell before. */
  arrived(): void;
  /** The call is over: its source is let go, whether it was read to its end or not. */
  end(): void;
};

/** How much is handed over at once of bytes that are all here, so that progress is seen. */
const pieceBytes = 64 * 1024;

type Sized = new (bytes: number) => TransformStream<Uint8Array, Uint8Array>;

/** Bytes that are all there can be sent again; a stream is gone once it was begun. */
export function isReplayable(upload: Upload | undefined): boolean {
  return upload === undefined || upload.content instanceof Uint8Array || isBlob(upload.content);
}

export async function outgoing({ content, progress }: Upload): Promise<Outgoing> {
  if (content instanceof Uint8Array || isBlob(content)) {
    const total = content instanceof Uint8Array ? content.byteLength : content.size;
    if (progress === undefined || !canStream()) return whole(content, total, progress);
    return streamed(piecesOf(content), total, progress);
  }
  const { stream, bytes } = content;
  if (canStream()) return streamed(stream, bytes, progress);
  return whole(await collected(stream, bytes), bytes, progress);
}

function isBlob(content: UploadContent): content is Blob {
  return typeof Blob !== "undefined" && content instanceof Blob;
}

/** Browsers stream a request over HTTP/2 only, if at all: there a Blob is sent, which they keep on disk. */
function canStream(): boolean {
  return !("window" in globalThis || "importScripts" in globalThis);
}

function whole(
  content: Uint8Array | Blob,
  total: number,
  progress: TellProgress | undefined,
): Outgoing {
  progress?.({ bytes: 0, total });
  const nothing = () => undefined;
  const arrived = () => progress?.({ bytes: total, total });
  return { body: content as BodyInit, isStream: false, broken: nothing, end: nothing, arrived };
}

function streamed(
  source: AsyncIterable<Uint8Array>,
  total: number,
  progress: TellProgress | undefined,
): Outgoing {
  const { stream, ...ends } = counted(source, total, progress);
  // In a Worker a stream without a length would seem to end where it breaks off.
  const { FixedLengthStream } = globalThis as { FixedLengthStream?: Sized };
  if (FixedLengthStream === undefined) {
    return { body: stream, length: total, isStream: true, ...ends };
  }
  const { readable, writable } = new FixedLengthStream(total);
  stream.pipeTo(writable).catch(() => undefined);
  return { body: readable, isStream: true, ...ends };
}

type Counted = Pick<Outgoing, "broken" | "arrived" | "end"> & {
  stream: ReadableStream<Uint8Array>;
};

/** As many bytes as were told, or a failure: one that ends early must not look whole. */
function counted(
  source: AsyncIterable<Uint8Array>,
  total: number,
  progress: TellProgress | undefined,
): Counted {
  const pieces = source[Symbol.asyncIterator]();
  let bytes = 0;
  let failure: unknown;
  let isOver = false;
  let control: ReadableStreamDefaultController<Uint8Array> | undefined;
  const next = async () => {
    const piece = await pieces.next();
    const come = bytes + (piece.done ? 0 : piece.value.byteLength);
    if (piece.done ? come < total : come > total) throw unlikeTold(come, total);
    return piece;
  };
  const end = () => {
    if (isOver) return;
    isOver = true;
    // Node reads on after its fetch was given up, for ever.
    control?.error(new Error("the call is over"));
    Promise.resolve(pieces.return?.()).catch(() => undefined);
  };
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    try {
      const piece = await next();
      if (isOver) return;
      if (piece.done) {
        isOver = true;
        return controller.close();
      }
      bytes += piece.value.byteLength;
      controller.enqueue(piece.value);
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
  // Told with its last byte.
  const arrived = () => undefined;
  return { stream, arrived, end, broken: () => failure };
}

function unlikeTold(come: number, total: number): BerthError {
  const how = come > total ? "more" : `only ${come}`;
  return new BerthError("bad_request", `bytes: ${total} were told, and ${how} came`, {
    facts: { field: "bytes" },
    hint: "Say exactly how long the stream is.",
  });
}

async function* piecesOf(content: Uint8Array | Blob): AsyncGenerator<Uint8Array> {
  const length = content instanceof Uint8Array ? content.byteLength : content.size;
  for (let at = 0; at < length; at += pieceBytes) {
    const end = Math.min(at + pieceBytes, length);
    if (content instanceof Uint8Array) yield content.subarray(at, end);
    else yield new Uint8Array(await content.slice(at, end).arrayBuffer());
  }
}

async function collected(source: AsyncIterable<Uint8Array>, total: number): Promise<Blob> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  for await (const piece of source) {
    bytes += piece.byteLength;
    if (bytes > total) throw unlikeTold(bytes, total);
    pieces.push(piece.slice() as Uint8Array<ArrayBuffer>);
  }
  if (bytes < total) throw unlikeTold(bytes, total);
  return new Blob(pieces);
}
