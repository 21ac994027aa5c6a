/**
 * Streams a log as the raw bytes of one stream, at the pace of its reader. A gap cannot be marked among bytes: it cuts
 * the stream off, and the `berth-offset` header of the next response shows it.
 */
import type { LogFollower } from "./log-follower.ts";

const chunkBytes = 256 * 1024;

export function logBytes(follower: LogFollower): ReadableStream<Uint8Array> {
  const { reader } = follower;
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        follower.onEvicted = () => controller.error(new Error("another reader took its place"));
      },
      async pull(controller) {
        do {
          if (follower.isClosed) return;
          if (reader.skipGap() !== undefined) {
            follower.close();
            controller.error("the reader fell behind what is kept of the log");
            return;
          }
          const bytes = concat(reader.take(chunkBytes, follower.end));
          if (bytes !== undefined) {
            follower.markSent();
            controller.enqueue(bytes);
            return;
          }
        } while ((await follower.next()) !== "over");
        if (follower.isClosed) return;
        follower.close();
        controller.close();
      },
      cancel: () => follower.close(),
    },
    { highWaterMark: 0 },
  );
}

function concat(pieces: { bytes: Uint8Array }[]): Uint8Array | undefined {
  const [first] = pieces;
  if (pieces.length <= 1) return first?.bytes;
  return Buffer.concat(pieces.map(({ bytes }) => bytes));
}
