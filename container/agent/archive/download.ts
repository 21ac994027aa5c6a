/** Sends an archive as a response, at the pace of its reader. */
import { limits } from "../../../src/protocol/limits.ts";
import { dispositionOf } from "../files/download.ts";
import type { Compression } from "./compression.ts";

const extensions = { none: ".tar", gzip: ".tar.gz", zstd: ".tar.zst" } as const;

type ArchiveDownload = {
  type: string;
  compression: Compression;
  name: string;
  signal: AbortSignal;
  /** Called once, when nothing more is sent. */
  onEnd: () => void;
};

/** The first bytes are made before the response begins, so that an early failure has a status of its own. */
export async function download(
  bytes: AsyncIterable<Uint8Array>,
  { type, compression, name, signal, onEnd }: ArchiveDownload,
): Promise<Response> {
  const body = await streamAtReaderPace(bytes, signal, onEnd);
  return new Response(body, {
    headers: {
      "content-type": type,
      "content-disposition": dispositionOf(`${name}${extensions[compression]}`),
      "x-content-type-options": "nosniff",
    },
  });
}

/** Cuts off a reader that reads nothing for too long. `onEnd` is called when nothing more is sent. */
async function streamAtReaderPace(
  bytes: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  onEnd: () => void,
): Promise<ReadableStream<Uint8Array>> {
  const source = bytes[Symbol.asyncIterator]();
  let idle: Timer | undefined;
  const close = async () => {
    clearTimeout(idle);
    signal.removeEventListener("abort", close);
    await source.return?.();
    onEnd();
  };
  let first: IteratorResult<Uint8Array> | undefined;
  try {
    first = await source.next();
  } catch (error) {
    onEnd();
    throw error;
  }
  signal.addEventListener("abort", close);
  if (signal.aborted) await close();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        clearTimeout(idle);
        try {
          const { done, value } = first ?? (await source.next());
          first = undefined;
          if (done === true) {
            await close();
            controller.close();
            return;
          }
          idle = setTimeout(() => {
            controller.error(new Error("the reader read nothing for too long"));
            close();
          }, limits.fileReaderMs);
          controller.enqueue(value);
        } catch (error) {
          // The response breaks off, so that nobody takes the part for the whole.
          await close();
          controller.error(error);
        }
      },
      cancel: close,
    },
    { highWaterMark: 0 },
  );
}
