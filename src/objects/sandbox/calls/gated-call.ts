/** Sends a gated call to the agent: past the lease, into the running container, and the response back. */
import type { Incarnation } from "../../../core/sandbox/record.ts";
import { BerthError } from "../../../protocol/errors.ts";
import type { EventData } from "../../../protocol/event.ts";
import { generateHandle } from "../../../protocol/fields/handle.ts";
import { agentPaths } from "../../../protocol/internal/agent.ts";
import { limits } from "../../../protocol/limits.ts";
import type { WireResponse } from "../../shared/result.ts";
import type { SandboxActor } from "../actor.ts";
import type { AgentRequest } from "../agent/agent-client.ts";
import { type ForwardOptions, forwardResponse } from "../agent/forward-response.ts";
import { type Handle, refuseStale, refuseUnknown } from "../agent/handles.ts";
import { runIdempotent } from "../idempotency/idempotent-call.ts";
import { admitGatedCall, type GatedCaller } from "../lease/gated-admission.ts";

export type Call = { actor: SandboxActor; caller: GatedCaller; requestId: string };

export type StartOptions = {
  kind: Handle["kind"];
  path: string;
  /** `id`: chosen by the caller; generated if left out. */
  body: {
    id?: string | undefined;
    endsWithLease?: boolean | undefined;
    [field: string]: unknown;
  };
  /** For processes: calls with the same idempotency key must be equal in this. */
  identity?: readonly unknown[];
  /** The session in which it starts. */
  session?: string | undefined;
  /** How long the start can take at the agent. */
  lastsMs?: number;
};

/** Fills in the folder and the user of the sandbox where the call leaves them out. */
export function withDefaults<Body extends { cwd?: string | undefined; user?: string | undefined }>(
  { actor }: Pick<Call, "actor">,
  body: Body,
): Body {
  const { cwd, user } = actor.facts.sandbox.spec;
  return { ...body, cwd: body.cwd ?? cwd, user: body.user ?? user };
}

/** Passes the response on to the caller. */
export type Forward<Answer> = (
  actor: SandboxActor,
  response: Response,
  options: ForwardOptions,
) => Answer | Promise<Answer>;

/** Starts a process, session or terminal, or finds the one with this id. */
export async function start(
  call: Call,
  { kind, path, body, identity = [], session, lastsMs = limits.agentHeadersMs }: StartOptions,
): Promise<WireResponse> {
  const { actor, caller, requestId } = call;
  const generateId = (agent: Incarnation) =>
    generateHandle(kind, agent.incarnation, actor.host.randomId);
  let started: { id: string; incarnation: string } | undefined;
  let releaseExitEvent: (() => void) | undefined;
  const check = () => {
    if (session !== undefined) refuseUnknown(actor, { kind: "session", id: session });
    if (body.id !== undefined) refuseStale(actor, { kind, id: body.id });
  };
  const send = (id: string): AgentRequest => {
    check();
    started = { id, incarnation: actor.runningAgent?.incarnation ?? "" };
    // The event of its exit must come after the event of its start.
    releaseExitEvent?.();
    releaseExitEvent = actor.workMonitor.deferExitEvent(id);
    const json = JSON.stringify({ ...body, id });
    return { method: "POST", path, body: json, requestId, headersMs: lastsMs };
  };
  if (body.endsWithLease === true && caller.token === undefined) throw leaseNeededError();
  check();
  try {
    const response = await (caller.key === undefined
      ? sendAdmitted(call, (agent) => send(body.id ?? generateId(agent)), forwardResponse)
      : runIdempotent({
          ...{ ...call, key: caller.key, identity, generateId, send, lastsMs },
          lookUp: (id) => ({ method: "GET", path: `${agentPaths.processes}/${id}`, requestId }),
        }));
    if (response.status === 201 && started !== undefined && actor.existing !== undefined) {
      const sessionId = session === undefined ? {} : { sessionId: session };
      const event: EventData = { type: kind, what: "started", ...started, ...sessionId };
      actor.commit({}, [event], `${kind} started`);
    }
    // The call has its response, but its work counts as in flight until the agent reports that nothing is left.
    if (body.endsWithLease === true && response.status === 201 && actor.runningAgent !== undefined)
      actor.link.onAbandoned(actor.runningAgent);
    return response;
  } finally {
    releaseExitEvent?.();
  }
}

/** Without a lease nothing would say when the process or terminal has to end. */
function leaseNeededError(): BerthError {
  return new BerthError("bad_request", "`endsWithLease` needs the token of a lease.", {
    hint: "Send the token in the header `Berth-Lease`.",
    facts: { field: "endsWithLease" },
  });
}

/** Calls `makeRequest` after the lease check, when a container runs. */
export async function sendAdmitted<Answer>(
  { actor, caller, requestId }: Call,
  makeRequest: (agent: Incarnation) => Omit<AgentRequest, "requestId">,
  forward: Forward<Answer>,
): Promise<Answer> {
  const admitted = await admitGatedCall(actor, caller);
  const { agent, end: onDone } = admitted;
  const onReaderLeft = () => {
    actor.link.onAbandoned(agent);
    onDone();
  };
  try {
    const request = { ...makeRequest(agent), requestId };
    const response = await actor.agentClient.sendGated(admitted, request);
    return await forward(actor, response, { agent, requestId, onDone, onReaderLeft });
  } catch (error) {
    onDone();
    throw error;
  }
}
