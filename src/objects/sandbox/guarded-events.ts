/**
 * Owns a stream of events of a process while its container may die: it ends with an event that says so, where the
 * last one is whole. Inside an event it breaks off, and the reader comes back with the cursor of the last whole one.
 */
import type { Life } from "../../core/sandbox/record.ts";
import { errorBody } from "../../protocol/errors.ts";
import type { SandboxActor } from "./actor.ts";
import { interrupted } from "./agent-ask.ts";
import { nextChunk } from "./guarded-body.ts";

const lineEnd = 0x0a;

export function guardedEvents(
  actor: SandboxActor,
  life: Life,
  response: Response,
  requestId: string,
): Response {
  if (response.body === null) throw new Error("a stream of events has a body");
  const reader = response.body.getReader();
  let last = [lineEnd, lineEnd];
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const read = await nextChunk(reader, actor.reach.timer);
      if (read === "cut") {
        const error = await interrupted(actor, life, true);
        if (last.some((byte) => byte !== lineEnd)) return controller.error(error);
        const data = JSON.stringify(errorBody(error, requestId).error);
        controller.enqueue(new TextEncoder().encode(`event: error\ndata: ${data}\n\n`));
        return controller.close();
      }
      if (read.done) {
        actor.work.lookSoon();
        return controller.close();
      }
      last = [...last, ...read.value.subarray(-2)].slice(-2);
      controller.enqueue(read.value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  const headers = { "content-type": "text/event-stream", "cache-control": "no-store" };
  return new Response(body, { status: response.status, headers });
}
