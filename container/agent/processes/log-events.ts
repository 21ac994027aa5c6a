/**
 * Owns a log as server-sent events: output with its cursor, gaps, the exit; and a sign of life in silence.
 * Does not own the reader's place (log-reader.ts).
 */
import type { Following } from "./following.ts";
import type { Piece } from "./log-reader.ts";

const chunkBytes = 64 * 1024;
const signOfLife = ":\n\n";

export function logEvents(following: Following): ReadableStream<Uint8Array> {
  let isBegun = false;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const say = (text: string) => {
          following.told();
          controller.enqueue(Buffer.from(text));
        };
        if (!isBegun) {
          isBegun = true;
          say(signOfLife);
          return;
        }
        for (;;) {
          const told = nextEvents(following);
          if (told !== "") {
            say(told);
            return;
          }
          const next = await following.next();
          if (next === "silence") {
            say(signOfLife);
            return;
          }
          if (next === "over") break;
        }
        following.close();
        const last = exitEvent(following);
        if (last !== "") say(last);
        controller.close();
      },
      cancel: () => following.close(),
    },
    { highWaterMark: 0 },
  );
}

function nextEvents({ reader, end }: Following): string {
  const gap = reader.gap();
  const lost =
    gap === undefined ? "" : `event: truncated\nid: ${gap.to}\ndata: ${JSON.stringify(gap)}\n\n`;
  return lost + reader.take(chunkBytes, end).map(outputEvent).join("");
}

function outputEvent({ stream, bytes, cursor }: Piece): string {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64");
  return `event: output\nid: ${cursor}\ndata: {"stream":"${stream}","data":"${data}"}\n\n`;
}

/** Only where all was told: one that did not ask to follow may end before. */
function exitEvent({ process, reader }: Following): string {
  const { exit, log } = process;
  if (exit === undefined || reader.position < log.end) return "";
  const { exitCode, signal, timedOut } = exit;
  return `event: exit\ndata: ${JSON.stringify({ exitCode, signal, timedOut })}\n\n`;
}
