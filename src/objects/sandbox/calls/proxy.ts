/**
 * Passes a verb of the agent on: the agent's path is the public one without the sandbox, and its response is returned
 * as the agent wrote it. Gated verbs go past the lease and may start a container; the others never start one.
 */
import type { Incarnation } from "../../../core/sandbox/record.ts";
import { sandboxPath } from "../../../protocol/verbs/row.ts";
import type { VerbRow } from "../../../protocol/verbs.ts";
import type { WireResponse } from "../../shared/result.ts";
import type { SandboxActor } from "../actor.ts";
import { type AgentRequest, type AgentResponse, writeQuery } from "../agent/agent-client.ts";
import { forwardResponse } from "../agent/forward-response.ts";
import { agentOfHandle, type Handle, refuseStale, refuseUnknown } from "../agent/handles.ts";
import type { AgentVerb, VerbArgs } from "../dispatch/verb-call.ts";
import { ensureRunning } from "../lease/gated-admission.ts";
import { type Call, type Forward, sendAdmitted } from "./gated-call.ts";

/** Verbs after which something may have ended: its event is written at once, not only at the idle deadline. */
const mayEndWork: ReadonlySet<AgentVerb> = new Set<AgentVerb>([
  "endProcess",
  "endSession",
  "endTerminal",
  "signalProcess",
  "waitForProcess",
]);

export async function proxyToAgent(
  { actor, requestId }: Omit<Call, "caller">,
  name: AgentVerb,
  row: VerbRow,
  args: VerbArgs,
): Promise<WireResponse> {
  const request = toAgentRequest(row, args);
  const handle = handleIn(row, args);
  const checkEnded = mayEndWork.has(name) ? () => actor.workMonitor.checkSoon() : () => undefined;
  if (args.gated !== undefined) {
    const call = { actor, caller: args.gated, requestId };
    const wire = await sendGated(call, handle ?? sessionIn(args), request, forwardResponse);
    checkEnded();
    return wire;
  }
  const sent = await sendUngated(actor, row, handle, args, { ...request, requestId });
  if (sent === undefined) return emptyList(row);
  return forwardResponse(actor, sent.response, {
    ...sent,
    requestId,
    onDone: checkEnded,
  });
}

/** `needed`: what must exist in the container that the request reaches. */
export function sendGated<Answer>(
  call: Call,
  needed: Handle | undefined,
  request: Omit<AgentRequest, "requestId">,
  forward: Forward<Answer>,
): Promise<Answer> {
  if (needed !== undefined) refuseUnknown(call.actor, needed);
  const send = () => {
    // During the lease check a new incarnation may have started.
    if (needed !== undefined) refuseUnknown(call.actor, needed);
    return request;
  };
  return sendAdmitted(call, send, forward);
}

function sendUngated(
  actor: SandboxActor,
  row: VerbRow,
  handle: Handle | undefined,
  args: VerbArgs,
  request: AgentRequest,
): Promise<AgentResponse | undefined> {
  if (handle !== undefined) {
    return actor.agentClient.sendToCurrent(() => agentOfHandle(actor, handle), request);
  }
  if (row.whenStopped === undefined) return sendToReady(actor, sessionIn(args), request);
  return actor.agentClient.sendToCurrent(() => currentAgent(actor), request);
}

/** Sends to the container that runs or is starting. Starts none: without one the call is refused. */
export function sendToReady(
  actor: SandboxActor,
  session: Handle | undefined,
  request: AgentRequest,
): Promise<AgentResponse> {
  const ready = () => {
    if (session !== undefined) refuseStale(actor, session);
    return ensureRunning(actor, false);
  };
  return actor.agentClient.sendToCurrent(ready, request);
}

/** The session in whose folder a path of a file is. */
export function sessionIn({ query, body }: VerbArgs): Handle | undefined {
  const { session } = (query ?? body ?? {}) as { session?: unknown };
  return typeof session === "string" ? { kind: "session", id: session } : undefined;
}

function currentAgent(actor: SandboxActor): Incarnation | undefined {
  actor.refuseIfDestroyed();
  return actor.runningAgent;
}

/** Lists are named after the last part of their path. */
function emptyList({ path }: VerbRow): WireResponse {
  const noun = path.slice(path.lastIndexOf("/") + 1);
  return { status: 200, json: JSON.stringify({ [noun]: [], nextCursor: null }) };
}

export function toAgentRequest(
  { method, path, responseMs }: VerbRow,
  { target, query, body }: VerbArgs,
): Omit<AgentRequest, "requestId"> {
  const own = `/v1${path.slice(sandboxPath.length)}`.replace(/:\w+/, String(target));
  return {
    method,
    path: `${own}${writeQuery(query)}`,
    ...(body === undefined ? {} : { body: toAgentBody(body) }),
    ...(responseMs === undefined ? {} : { headersMs: responseMs }),
  };
}

function toAgentBody(body: unknown): string | Uint8Array<ArrayBuffer> {
  return body instanceof Uint8Array ? (body as Uint8Array<ArrayBuffer>) : JSON.stringify(body);
}

function handleIn({ path }: VerbRow, { target }: VerbArgs): Handle | undefined {
  const kind = /:(process|session|terminal)\b/.exec(path)?.[1] as Handle["kind"] | undefined;
  return kind === undefined ? undefined : { kind, id: String(target) };
}
