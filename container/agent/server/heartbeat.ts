/**
 * Responds to calls that may take long: plain JSON if the result comes soon, otherwise JSON after a heartbeat of spaces.
 * Writing the heartbeat also detects that the caller has disconnected.
 */
import { limits } from "../../../src/protocol/limits.ts";
import { failureBody } from "./failure.ts";
import { markStreaming } from "./streaming.ts";
import { resolvesWithin } from "./timeout.ts";

/** Aborts when the caller has disconnected, as seen by the server or by a heartbeat that nobody reads. */
export function watchCaller({ signal }: Request): AbortController {
  const caller = new AbortController();
  signal.addEventListener("abort", () => caller.abort(), { once: true });
  if (signal.aborted) caller.abort();
  return caller;
}

export async function respondWithHeartbeat(
  result: Promise<Uint8Array>,
  requestId: string,
  caller: AbortController,
): Promise<Response> {
  const headers = { "content-type": "application/json" };
  // A rejection that comes soon gets a status of its own.
  const settled = Promise.allSettled([result]);
  if (await resolvesWithin(settled, limits.execHeartbeatAfterMs)) {
    return new Response(await result, { headers });
  }
  return markStreaming(new Response(writeHeartbeat(result, requestId, caller), { headers }));
}

/** Whitespace before JSON is legal. */
function writeHeartbeat(
  result: Promise<Uint8Array>,
  requestId: string,
  caller: AbortController,
): ReadableStream<Uint8Array> {
  const space = Buffer.from(" ");
  let beat: Timer | undefined;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      const write = () => controller.enqueue(space);
      write();
      beat = setInterval(write, limits.execHeartbeatEveryMs);
      result
        .catch((error: unknown) => Buffer.from(JSON.stringify(failureBody(error, requestId))))
        .then((body) => {
          clearInterval(beat);
          if (caller.signal.aborted) return;
          controller.enqueue(body);
          controller.close();
        });
    },
    cancel() {
      clearInterval(beat);
      caller.abort();
    },
  });
}
