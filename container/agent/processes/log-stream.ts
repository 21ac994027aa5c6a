/** Streams a log at the pace of its reader: as server-sent events, or as the raw bytes of one stream. */
import type { LogFollower, Piece } from "./log-follower.ts";

const bytesChunkBytes = 256 * 1024;
const eventsChunkBytes = 64 * 1024;

type LogFormat = {
  /** What to send now; undefined: nothing yet; "gap": output was lost, which the format cannot mark. */
  take(follower: LogFollower): Uint8Array | "gap" | undefined;
  keepalive?: string;
  /** What to send after all output. */
  finish?(follower: LogFollower): Uint8Array | undefined;
};

/** A gap cuts the stream off, and the `berth-offset` header of the next response shows it. */
const bytesFormat: LogFormat = {
  take(follower) {
    if (follower.skipGap() !== undefined) return "gap";
    const pieces = follower.take(bytesChunkBytes);
    if (pieces.length <= 1) return pieces[0]?.bytes;
    return Buffer.concat(pieces.map(({ bytes }) => bytes));
  },
};

const eventsFormat: LogFormat = {
  take(follower) {
    const gap = follower.skipGap();
    const lost =
      gap === undefined ? "" : `event: truncated\nid: ${gap.to}\ndata: ${JSON.stringify(gap)}\n\n`;
    const events = lost + follower.take(eventsChunkBytes).map(outputEvent).join("");
    return events === "" ? undefined : Buffer.from(events);
  },
  keepalive: ":\n\n",
  /** Nothing where output is left: a reader that does not follow may end before the log does. */
  finish({ process: { exit, log }, position }) {
    if (exit === undefined || position < log.end) return undefined;
    const { exitCode, signal, timedOut, leftovers } = exit;
    const ended = { exitCode, signal, timedOut, ...(leftovers > 0 && { leftovers }) };
    const data = JSON.stringify(ended);
    return Buffer.from(`event: exit\ndata: ${data}\n\n`);
  },
};

function outputEvent({ stream, bytes, cursor }: Piece): string {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64");
  return `event: output\nid: ${cursor}\ndata: {"stream":"${stream}","data":"${data}"}\n\n`;
}

export function streamLog(follower: LogFollower): ReadableStream<Uint8Array> {
  const { take, keepalive, finish } = follower.form === "bytes" ? bytesFormat : eventsFormat;
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        follower.onEvicted = () => controller.error(new Error("another reader took its place"));
        if (keepalive !== undefined) controller.enqueue(Buffer.from(keepalive));
      },
      async pull(controller) {
        const send = (bytes: Uint8Array) => {
          follower.markSent();
          controller.enqueue(bytes);
        };
        while (!follower.isClosed) {
          const bytes = take(follower);
          if (bytes === "gap") {
            follower.close();
            controller.error("the reader fell behind what is kept of the log");
            return;
          }
          if (bytes !== undefined) return send(bytes);
          const next = await follower.next();
          if (follower.isClosed) return;
          if (next === "silence" && keepalive !== undefined) return send(Buffer.from(keepalive));
          if (next !== "over") continue;
          follower.close();
          const last = finish?.(follower);
          if (last !== undefined) send(last);
          controller.close();
        }
      },
      cancel: () => follower.close(),
    },
    { highWaterMark: 0 },
  );
}
