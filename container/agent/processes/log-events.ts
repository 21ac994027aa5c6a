/**
 * Streams a log as server-sent events: output with its cursor, gaps, the exit, and keepalive comments.
 */
import type { LogFollower } from "./log-follower.ts";
import type { Piece } from "./log-reader.ts";

const chunkBytes = 64 * 1024;
const keepalive = ":\n\n";

export function logEvents(follower: LogFollower): ReadableStream<Uint8Array> {
  let isBegun = false;
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        follower.onEvicted = () => controller.error(new Error("another reader took its place"));
      },
      async pull(controller) {
        const send = (text: string) => {
          follower.markSent();
          controller.enqueue(Buffer.from(text));
        };
        if (!isBegun) {
          isBegun = true;
          send(keepalive);
          return;
        }
        for (;;) {
          if (follower.isClosed) return;
          const events = nextEvents(follower);
          if (events !== "") {
            send(events);
            return;
          }
          const next = await follower.next();
          if (follower.isClosed) return;
          if (next === "silence") {
            send(keepalive);
            return;
          }
          if (next === "over") break;
        }
        follower.close();
        const exit = exitEvent(follower);
        if (exit !== "") send(exit);
        controller.close();
      },
      cancel: () => follower.close(),
    },
    { highWaterMark: 0 },
  );
}

function nextEvents({ reader, end }: LogFollower): string {
  const gap = reader.skipGap();
  const lost =
    gap === undefined ? "" : `event: truncated\nid: ${gap.to}\ndata: ${JSON.stringify(gap)}\n\n`;
  return lost + reader.take(chunkBytes, end).map(outputEvent).join("");
}

function outputEvent({ stream, bytes, cursor }: Piece): string {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64");
  return `event: output\nid: ${cursor}\ndata: {"stream":"${stream}","data":"${data}"}\n\n`;
}

/** Empty where output is left: a reader that does not follow may end before the log does. */
function exitEvent({ process, reader }: LogFollower): string {
  const { exit, log } = process;
  if (exit === undefined || reader.position < log.end) return "";
  const { exitCode, signal, timedOut } = exit;
  return `event: exit\ndata: ${JSON.stringify({ exitCode, signal, timedOut })}\n\n`;
}
