/**
 * Watches a stream of events while its container may die: it then ends with an error event. The platform pumps the
 * bytes, because reading them here is ten times slower.
 */
import type { Incarnation } from "../../../core/sandbox/record.ts";
import { errorBody } from "../../../protocol/errors.ts";
import type { SandboxActor } from "../actor.ts";
import { interruptedError } from "./agent-client.ts";
import { bodyOf } from "./body-watchdog.ts";
import { isCurrent } from "./handles.ts";

export function watchEventStream(
  actor: SandboxActor,
  agent: Incarnation,
  response: Response,
  requestId: string,
): Response {
  const { readable, writable } = new IdentityTransformStream();
  const pumped = bodyOf(response).pipeTo(writable, { preventClose: true, preventAbort: true });
  actor.host.waitUntil(pumped.then(end, broken).catch(() => undefined));
  const headers = { "content-type": "text/event-stream", "cache-control": "no-store" };
  return new Response(readable, { status: response.status, headers });

  async function end(): Promise<void> {
    actor.workMonitor.checkSoon();
    await writable.close();
  }

  /** Either end may be gone: a request finds out whether the agent still answers. */
  async function broken(): Promise<void> {
    await actor.workMonitor.probeIdleMs();
    if (isCurrent(actor, agent)) {
      return writable.abort(new Error("the stream broke off"));
    }
    const { error } = errorBody(interruptedError(true), requestId);
    // The stream may have broken off inside an event; the newline ends that.
    const event = `\nevent: error\ndata: ${JSON.stringify(error)}\n\n`;
    const writer = writable.getWriter();
    await writer.write(new TextEncoder().encode(event));
    await writer.close();
  }
}
