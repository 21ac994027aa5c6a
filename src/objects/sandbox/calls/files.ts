/**
 * Owns calls on files that are JSON both ways, and the two that answer with events: a watch and a clone.
 * Does not own bytes of files (transfers.ts), nor what a call does: the agent has that.
 */
import { agentPaths } from "../../../protocol/internal/agent.ts";
import { limits } from "../../../protocol/limits.ts";
import type { Reply } from "../../shared/result.ts";
import type { SandboxActor } from "../actor.ts";
import { queryText } from "../agent/agent-query.ts";
import type { Ask } from "../agent/agent-request.ts";
import { type Asked, askLife } from "../agent/current-incarnation.ts";
import { passOn } from "../agent/forward-response.ts";
import { guardedEvents } from "../agent/guarded-events.ts";
import { refuseStale, refuseUnknown } from "../agent/handles.ts";
import type { FileLook, FileWork } from "../dispatch/files-call.ts";
import { ready } from "../lease/gated.ts";
import { type Call, throughGate } from "./gated-call.ts";
import { cloneEvents } from "./git-clone.ts";

const uncounted = { done: () => undefined, leave: () => undefined };

export async function lookAtFiles(
  actor: SandboxActor,
  { look, query }: FileLook,
  requestId: string,
): Promise<Reply> {
  const path = `${agentPaths.files}/${look}${queryText(query)}`;
  const ask: Ask = { method: "GET", path, requestId, headersMs: limits.fileCallMs };
  const { response, life } = await askReady(actor, sessionOf(query), ask);
  if (look === "watch" && response.ok) return guardedEvents(actor, life, response, requestId);
  return passOn(actor, response, { life, requestId, ...uncounted });
}

export async function workOnFiles(call: Call, work: FileWork): Promise<Reply> {
  const { actor } = call;
  const session = sessionIn(work);
  refuseLostSession(actor, session);
  const ask = () => {
    // While it waited at the gate the life may have become another.
    refuseLostSession(actor, session);
    return askOf(work);
  };
  return throughGate(call, ask, (response, coming) =>
    work.do === "clone" && response.ok
      ? cloneEvents(actor, response, coming)
      : passOn(actor, response, coming),
  );
}

/** The answer of the life that runs, or comes up; where none does, the call is refused and none is started. */
export function askReady(
  actor: SandboxActor,
  session: string | undefined,
  ask: Ask,
): Promise<Asked> {
  const lifeNow = () => {
    if (session !== undefined) refuseStale(actor, { kind: "session", id: session });
    return ready(actor, false);
  };
  return askLife(actor, lifeNow, ask);
}

/** A path in the folder of a session means nothing where that session cannot be. */
export function refuseLostSession(actor: SandboxActor, session: string | undefined): void {
  if (session !== undefined) refuseUnknown(actor, { kind: "session", id: session });
}

function askOf(work: FileWork): Omit<Ask, "requestId"> {
  const headersMs = limits.fileCallMs;
  if (work.do === "remove") {
    return { method: "DELETE", path: `${agentPaths.files}${queryText(work.query)}`, headersMs };
  }
  const path = work.do === "clone" ? `${agentPaths.git}/clone` : `${agentPaths.files}/${work.do}`;
  return { method: "POST", path, body: JSON.stringify(work.call), headersMs };
}

function sessionIn(work: FileWork): string | undefined {
  return work.do === "remove" ? sessionOf(work.query) : work.call.session;
}

function sessionOf({ session }: FileLook["query"]): string | undefined {
  return typeof session === "string" ? session : undefined;
}
