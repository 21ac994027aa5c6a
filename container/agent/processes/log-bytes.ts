/**
 * Owns a log as the raw bytes of one stream, pulled by whoever takes them.
 * Does not own the reader's place (log-reader.ts). A gap cannot be told among bytes: it cuts the stream off, and who
 * asks again sees it in the header.
 */
import type { Following } from "./following.ts";

const chunkBytes = 256 * 1024;

export function logBytes(following: Following): ReadableStream<Uint8Array> {
  const { reader } = following;
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        following.onLetGo = () => controller.error(new Error("another reader took its place"));
      },
      async pull(controller) {
        do {
          if (following.isClosed) return;
          if (reader.gap() !== undefined) {
            following.close();
            controller.error("the reader fell behind what is kept of the log");
            return;
          }
          const bytes = joined(reader.take(chunkBytes, following.end));
          if (bytes !== undefined) {
            following.told();
            controller.enqueue(bytes);
            return;
          }
        } while ((await following.next()) !== "over");
        if (following.isClosed) return;
        following.close();
        controller.close();
      },
      cancel: () => following.close(),
    },
    { highWaterMark: 0 },
  );
}

function joined(pieces: { bytes: Uint8Array }[]): Uint8Array | undefined {
  const [first] = pieces;
  if (pieces.length <= 1) return first?.bytes;
  return Buffer.concat(pieces.map(({ bytes }) => bytes));
}
