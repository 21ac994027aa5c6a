/** Forwards a JSON response of the agent that may come late: a short one as text, a long one as a stream. */
import type { Incarnation } from "../../../core/sandbox/record.ts";
import { errorBodySchema } from "../../../protocol/errors.ts";
import { limits } from "../../../protocol/limits.ts";
import { parseJson } from "../../../runtime/bodies.ts";
import type { WireResponse } from "../../shared/result.ts";
import type { SandboxActor } from "../actor.ts";
import { readShortBody, watchBody } from "./body-watchdog.ts";

export type ForwardOptions = {
  agent: Incarnation;
  requestId: string;
  /** Called once at the end of the response; until then the call counts as in flight. */
  onDone?: () => void;
  /** The reader disconnected before the end. */
  onReaderLeft?: () => void;
};

/** An agent may send anything: only an object, or an error with a known code, is passed on. */
function isPublicResponse(status: number, json: string): boolean {
  const body = parseJson(json);
  if (typeof body !== "object" || body === null) return false;
  return status < 400 || errorBodySchema.safeParse(body).success;
}

export async function forwardResponse(
  actor: SandboxActor,
  response: Response,
  { agent, requestId, onDone = () => {}, onReaderLeft = () => {} }: ForwardOptions,
): Promise<WireResponse> {
  const { status, headers } = response;
  const type = { "content-type": "application/json" };
  const length = headers.get("content-length");
  if (length !== null && Number(length) <= limits.wholeResponseBytesMax) {
    const json = await readShortBody(response, actor.freeze.startTimer);
    return forwardShort(actor, { status, json }, { agent, onDone });
  }
  if (length !== null) {
    onDone();
    return new Response(response.body, { status, headers: { ...type, "content-length": length } });
  }
  const cut = () => actor.agentClient.interrupted(agent, true);
  const body = watchBody(response, requestId, actor.freeze.startTimer, cut, onDone, onReaderLeft);
  return new Response(body, { status, headers: type });
}

/** `json` is undefined if the response broke off or was longer than announced. */
export async function forwardShort(
  actor: SandboxActor,
  { status, json }: { status: number; json: string | undefined },
  { agent, onDone }: Pick<ForwardOptions, "agent" | "onDone">,
): Promise<WireResponse> {
  if (json === undefined || !isPublicResponse(status, json))
    throw await actor.agentClient.interrupted(agent, true);
  onDone?.();
  return { status, json };
}
