/**
 * The two verbs on files that return events: watching a folder and cloning a repository.
 */

import type { z } from "zod";
import type { watchQuerySchema } from "../../../protocol/file.ts";
import type { CloneCall } from "../../../protocol/git.ts";
import { verbs } from "../../../protocol/verbs.ts";
import type { WireResponse } from "../../shared/result.ts";
import { watchEventStream } from "../agent/event-stream-watchdog.ts";
import { forwardResponse } from "../agent/forward-response.ts";
import type { Call } from "./gated-call.ts";
import { cloneEvents } from "./git-clone.ts";
import { sendGated, sendToReady, sessionIn, toAgentRequest } from "./proxy.ts";

export async function watchFiles(
  { actor, requestId }: Omit<Call, "caller">,
  query: z.output<typeof watchQuerySchema>,
): Promise<WireResponse> {
  const request = { ...toAgentRequest(verbs.watchFiles, { query }), requestId };
  const { response, agent } = await sendToReady(actor, sessionIn({ query }), request);
  if (response.ok) return watchEventStream(actor, agent, response, requestId);
  const nothing = () => undefined;
  return forwardResponse(actor, response, {
    agent,
    requestId,
    onDone: nothing,
    onReaderLeft: nothing,
  });
}

export function cloneRepository(call: Call, body: CloneCall): Promise<WireResponse> {
  const request = toAgentRequest(verbs.cloneRepository, { body });
  return sendGated(call, sessionIn({ body }), request, (response, options) =>
    response.ok
      ? cloneEvents(call.actor, response, options)
      : forwardResponse(call.actor, response, options),
  );
}
