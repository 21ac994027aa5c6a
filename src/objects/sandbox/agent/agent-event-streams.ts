/** Forwards event streams of the agent while its container may die: they then end with an error event. */
import type { Incarnation } from "../../../core/sandbox/record.ts";
import { errorBody } from "../../../protocol/errors.ts";
import type { SandboxActor } from "../actor.ts";
import { interruptedError } from "./agent-client.ts";
import { bodyOf, cutOnSilence } from "./body-watchdog.ts";
import type { ForwardOptions } from "./forward-response.ts";

const eventHeaders = { "content-type": "text/event-stream", "cache-control": "no-store" };

/** The platform pumps the bytes, because reading them here is ten times slower. */
export function watchEventStream(
  actor: SandboxActor,
  agent: Incarnation,
  response: Response,
  requestId: string,
): Response {
  const { readable, writable } = new IdentityTransformStream();
  const pumped = bodyOf(response).pipeTo(writable, { preventClose: true, preventAbort: true });
  actor.host.waitUntil(pumped.then(end, broken).catch(() => undefined));
  return new Response(readable, { status: response.status, headers: eventHeaders });

  async function end(): Promise<void> {
    actor.workMonitor.checkSoon();
    await writable.close();
  }

  /** Either end may be gone: a request finds out whether the agent still answers. */
  async function broken(): Promise<void> {
    await actor.workMonitor.probeIdleMs();
    if (actor.isCurrent(agent)) return writable.abort(new Error("the stream broke off"));
    const { error } = errorBody(interruptedError(true), requestId);
    // The stream may have broken off inside an event; the newline ends that.
    const event = `\nevent: error\ndata: ${JSON.stringify(error)}\n\n`;
    const writer = writable.getWriter();
    await writer.write(new TextEncoder().encode(event));
    await writer.close();
  }
}

/**
 * A clone is gated work: it ends with its last event, when the reader leaves, or when the container is lost. Its events
 * are few, so they are read here to notice that the reader has left.
 */
export function forwardCloneEvents(
  actor: SandboxActor,
  response: Response,
  { agent, requestId, onDone, onReaderLeft }: ForwardOptions,
): Response {
  const reader = bodyOf(response).getReader();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const read = await cutOnSilence(reader.read(), actor.freeze.startTimer);
      if (read !== "cut" && !read.done) return controller.enqueue(read.value);
      if (read === "cut") {
        const failed = errorBody(await actor.agentClient.interrupted(agent, true), requestId);
        // The stream may have ended inside an event: the empty lines end that one first.
        const event = `\n\nevent: error\ndata: ${JSON.stringify(failed)}\n\n`;
        controller.enqueue(new TextEncoder().encode(event));
      }
      onDone?.();
      controller.close();
    },
    cancel(reason) {
      onReaderLeft?.();
      return reader.cancel(reason);
    },
  });
  return new Response(body, { status: response.status, headers: eventHeaders });
}
