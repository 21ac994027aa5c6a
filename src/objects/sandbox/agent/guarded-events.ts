/**
 * Owns a stream of events while its container may die: it then ends with an event that says so.
 * The bytes are pumped by the platform: read here, they would pass at a tenth of the speed.
 */
import type { Life } from "../../../core/sandbox/record.ts";
import { errorBody } from "../../../protocol/errors.ts";
import type { SandboxActor } from "../actor.ts";
import { interruptedError } from "./agent-request.ts";
import { bodyOf } from "./guarded-body.ts";
import { isCurrent } from "./handles.ts";

export function guardedEvents(
  actor: SandboxActor,
  life: Life,
  response: Response,
  requestId: string,
): Response {
  const { readable, writable } = new IdentityTransformStream();
  const pumped = bodyOf(response).pipeTo(writable, { preventClose: true, preventAbort: true });
  actor.host.background(pumped.then(end, broken).catch(() => undefined));
  const headers = { "content-type": "text/event-stream", "cache-control": "no-store" };
  return new Response(readable, { status: response.status, headers });

  async function end(): Promise<void> {
    actor.work.lookSoon();
    await writable.close();
  }

  /** Either end may have gone: the agent is asked whether it still lives. */
  async function broken(): Promise<void> {
    await actor.work.idleMs();
    if (isCurrent(actor, life)) {
      return writable.abort(new Error("the stream broke off"));
    }
    const { error } = errorBody(interruptedError(true), requestId);
    // It may have broken off inside an event: the last line of the data is ours then.
    const event = `\nevent: error\ndata: ${JSON.stringify(error)}\n\n`;
    const writer = writable.getWriter();
    await writer.write(new TextEncoder().encode(event));
    await writer.close();
  }
}
