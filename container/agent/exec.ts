/**
 * Owns the answer to an exec call: plain JSON where it comes soon, a heartbeat before it where it does not.
 * Does not own the command (commands.ts). The answer passes through the Worker untouched.
 */
import type { ExecResult } from "../../src/protocol/exec.ts";
import { limits } from "../../src/protocol/limits.ts";
import { readJson } from "./body.ts";
import type { Commands } from "./commands.ts";
import { failureBody } from "./failure.ts";
import { readExecCall } from "./read-call.ts";

export async function answerExec(
  request: Request,
  { commands, fence, incarnation }: { commands: Commands; fence: number; incarnation: string },
): Promise<Response> {
  const call = readExecCall(await readJson(request));
  const caller = new AbortController();
  const gone = new AbortController();
  caller.signal.addEventListener("abort", () => gone.abort());
  const onAbort = () => caller.abort();
  request.signal.addEventListener("abort", onAbort);
  if (request.signal.aborted) caller.abort();
  const work = commands
    .run(call, { fence, gone })
    .then((finished): ExecResult => ({ execId: call.execId, ...finished, incarnation }))
    .finally(() => request.signal.removeEventListener("abort", onAbort));
  if (await isSoon(work)) return Response.json(await work);
  return new Response(withHeartbeat(work, { requestId: call.requestId, caller }), {
    headers: { "content-type": "application/json" },
  });
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
  work: Promise<ExecResult>,
  { requestId, caller }: { requestId: string; caller: AbortController },
): ReadableStream<Uint8Array> {
  const space = Buffer.from(" ");
  let beat: Timer | undefined;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      const write = () => controller.enqueue(space);
      write();
      beat = setInterval(write, limits.execHeartbeatEveryMs);
      work
        .catch((error: unknown) => failureBody(error, requestId))
        .then((body) => {
          clearInterval(beat);
          if (caller.signal.aborted) return;
          controller.enqueue(Buffer.from(JSON.stringify(body)));
          controller.close();
        });
    },
    cancel() {
      clearInterval(beat);
      caller.abort();
    },
  });
}
