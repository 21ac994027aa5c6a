/**
 * Owns the events of a clone on their way: they are gated work, which ends with them, with their reader, or with the
 * container; the last is told by an event. They are few, so they are read here: a reader who goes is then noticed.
 */
import { errorBody } from "../../../protocol/errors.ts";
import type { SandboxActor } from "../actor.ts";
import { interrupted } from "../agent/agent-request.ts";
import type { Coming } from "../agent/forward-response.ts";
import { bodyOf, nextChunk } from "../agent/guarded-body.ts";

export function cloneEvents(
  actor: SandboxActor,
  response: Response,
  { life, requestId, done, leave }: Coming,
): Response {
  const reader = bodyOf(response).getReader();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const read = await nextChunk(reader, actor.reach.timer);
      if (read !== "cut" && !read.done) return controller.enqueue(read.value);
      if (read === "cut") {
        const failed = errorBody(await interrupted(actor, life, true), requestId);
        // It may have broken off inside an event: the last line of the data is ours then.
        const event = `\n\nevent: error\ndata: ${JSON.stringify(failed)}\n\n`;
        controller.enqueue(new TextEncoder().encode(event));
      }
      done();
      controller.close();
    },
    cancel(reason) {
      leave();
      return reader.cancel(reason);
    },
  });
  const headers = { "content-type": "text/event-stream", "cache-control": "no-store" };
  return new Response(body, { status: response.status, headers });
}
