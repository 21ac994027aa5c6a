/**
 * Owns an answer that may take long: plain JSON where it comes soon, a heartbeat before it where it does not; and
 * who notices that its caller is gone. Does not own the work, nor what becomes of it without the caller.
 */
import { limits } from "../../../src/protocol/limits.ts";
import { failureBody } from "./failure.ts";
import { markUnderWay } from "./under-way.ts";

/** Aborted when it is seen to be gone, by the server or by a heartbeat that nobody takes. */
export function callerOf({ signal }: Request): AbortController {
  const caller = new AbortController();
  signal.addEventListener("abort", () => caller.abort(), { once: true });
  if (signal.aborted) caller.abort();
  return caller;
}

export async function answerWith(
  work: Promise<Uint8Array>,
  requestId: string,
  caller: AbortController,
): Promise<Response> {
  const headers = { "content-type": "application/json" };
  if (await isSoon(work)) return new Response(await work, { headers });
  return markUnderWay(new Response(withHeartbeat(work, requestId, caller), { headers }));
}

/** Rejections count: they get a status of their own. */
function isSoon(work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), limits.execHeartbeatAfterMs);
    const done = () => {
      clearTimeout(timer);
      resolve(true);
    };
    work.then(done, done);
  });
}

/** Spaces are legal before JSON. Written to, a connection shows whether its other end is still there. */
function withHeartbeat(
  work: Promise<Uint8Array>,
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
      work
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
