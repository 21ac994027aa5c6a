/**
 * Forwards the events of a clone. The clone is gated work: it ends with its last event, when the reader leaves, or when
 * the container is lost; then an `error` event says so. Events are few, so they are read here to notice that the reader
 * has left.
 */
import { errorBody } from "../../../protocol/errors.ts";
import type { SandboxActor } from "../actor.ts";
import { bodyOf, nextChunk } from "../agent/body-watchdog.ts";
import type { ForwardOptions } from "../agent/forward-response.ts";

export function cloneEvents(
  actor: SandboxActor,
  response: Response,
  { agent, requestId, onDone, onReaderLeft }: ForwardOptions,
): Response {
  const reader = bodyOf(response).getReader();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const read = await nextChunk(reader, actor.freeze.startTimer);
      if (read !== "cut" && !read.done) return controller.enqueue(read.value);
      if (read === "cut") {
        const failed = errorBody(await actor.agentClient.interrupted(agent, true), requestId);
        // The stream may have ended inside an event: the empty lines end that one first.
        const event = `\n\nevent: error\ndata: ${JSON.stringify(failed)}\n\n`;
        controller.enqueue(new TextEncoder().encode(event));
      }
      onDone();
      controller.close();
    },
    cancel(reason) {
      onReaderLeft();
      return reader.cancel(reason);
    },
  });
  const headers = { "content-type": "text/event-stream", "cache-control": "no-store" };
  return new Response(body, { status: response.status, headers });
}
