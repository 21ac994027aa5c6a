/**
 * Converts the bytes of files for RPC methods. An upload needs its length, because over RPC a stream that breaks
 * looks like one that ends.
 */
import type { Content, FileContent, ReadOptions } from "../../protocol/api.ts";
import { streamOf } from "../http/responses.ts";
import { invalidField } from "../http/validate.ts";
import { checkSize } from "./transfer.ts";

export function bodyOf(content: Content): Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> {
  if (content instanceof Uint8Array) {
    checkSize(content.length);
    return content as Uint8Array<ArrayBuffer>;
  }
  const { stream, bytes } = content ?? {};
  if (!(stream instanceof ReadableStream)) {
    throw invalidField(
      "content",
      "must be a Uint8Array, or a `stream` with how many `bytes` it has",
    );
  }
  checkSize(bytes);
  const { readable, writable } = new FixedLengthStream(bytes);
  // The reader of the other end sees a failure.
  stream.pipeTo(writable).catch(() => undefined);
  return readable;
}

export function rangeHeader({ start, end }: NonNullable<ReadOptions["range"]>): string {
  const isOffset = (offset: number) => Number.isSafeInteger(offset) && offset >= 0;
  if (!isOffset(start)) throw invalidField("range", "`start` must be a whole number");
  if (end === undefined) return `bytes=${start}-`;
  if (!isOffset(end) || end <= start)
    throw invalidField("range", "`end` must be a whole number above start");
  return `bytes=${start}-${end - 1}`;
}

export async function fileContentOf(answer: Response): Promise<FileContent> {
  const { headers } = answer;
  const part = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers.get("content-range") ?? "");
  const length = Number(headers.get("content-length") ?? 0);
  const [start, end, size] =
    part === null ? [0, length, length] : [Number(part[1]), Number(part[2]) + 1, Number(part[3])];
  const isEmpty = answer.ok && answer.body === null;
  return {
    body: isEmpty ? new Blob([]).stream() : await streamOf(answer),
    etag: headers.get("etag") ?? "",
    modifiedAt: new Date(headers.get("last-modified") ?? 0).toISOString(),
    start,
    end,
    size,
  };
}
