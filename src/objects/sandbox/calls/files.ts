/** The two verbs on files that return events: watching a folder and cloning a repository. */
import type { z } from "zod";
import type { CloneCall, watchQuerySchema } from "../../../protocol/file.ts";
import { verbs } from "../../../protocol/verbs.ts";
import type { WireResponse } from "../../shared/result.ts";
import { forwardCloneEvents, watchEventStream } from "../agent/agent-event-streams.ts";
import { forwardResponse } from "../agent/forward-response.ts";
import type { Call } from "./gated-call.ts";
import { sendGated, sendToReady, sessionIn, toAgentRequest } from "./proxy.ts";

export async function watchFiles(
  { actor, requestId }: Omit<Call, "caller">,
  query: z.output<typeof watchQuerySchema>,
): Promise<WireResponse> {
  const request = { ...toAgentRequest(verbs.watchFiles, { query }), requestId };
  const { response, agent } = await sendToReady(actor, sessionIn({ query }), request);
  if (response.ok) return watchEventStream(actor, agent, response, requestId);
  return forwardResponse(actor, response, { agent, requestId });
}

export function cloneRepository(call: Call, body: CloneCall): Promise<WireResponse> {
  const request = toAgentRequest(verbs.cloneRepository, { body });
  return sendGated(call, sessionIn({ body }), request, (actor, response, options) => {
    const forward = response.ok ? forwardCloneEvents : forwardResponse;
    return forward(actor, response, options);
  });
}
