/**
 * Owns the gated calls on processes: start, write to, signal, end.
 * Does not own looking at them (look.ts), nor what becomes of them: the agent has that.
 */

import { BerthError } from "../../../protocol/errors.ts";
import { agentPaths } from "../../../protocol/internal/agent.ts";
import { limits } from "../../../protocol/limits.ts";
import type { ProcessCall, SignalName } from "../../../protocol/process.ts";
import type { Reply } from "../../shared/result.ts";
import { queryText } from "../agent/agent-query.ts";
import { runningLife } from "../agent/handles.ts";
import type { Query } from "../dispatch/work-call.ts";
import { begin, type Call, callOn } from "./gated-call.ts";

export async function start(call: Call, process: ProcessCall): Promise<Reply> {
  const cwd = process.cwd ?? call.actor.facts.sandbox.spec.cwd;
  demandLease(call, process);
  const lastsMs = limits.agentHeadersMs + replaceMs(process);
  const reply = await begin(call, {
    ...{ kind: "process", lastsMs, same: ["process", process] },
    send: (id) => ({
      method: "POST",
      path: agentPaths.processes,
      body: JSON.stringify({ ...process, cwd, id }),
      headersMs: lastsMs,
    }),
  });
  started(call, process, reply);
  return reply;
}

/** The agent answers when the one that it replaces has ended. */
export function replaceMs({ ifRunning }: ProcessCall): number {
  return ifRunning === "replace" ? limits.processReplaceMs : 0;
}

/** In a session too. */
export function started(call: Call, process: ProcessCall, { status }: Reply): void {
  if (process.endsWithLease && status === 201) countOn(call);
  // Its end is told soon, and not when somebody asks for it.
  if (process.ifRunning === "replace") call.actor.work.lookSoon();
}

/** Of terminals too. Else nobody could say when it has to end. */
export function demandLease(
  { caller }: Call,
  { endsWithLease }: Pick<ProcessCall, "endsWithLease">,
): void {
  if (!endsWithLease || caller.token !== undefined) return;
  throw new BerthError("bad_request", "endsWithLease needs the token of a lease.", {
    hint: "Send it in the header Berth-Lease.",
    facts: { field: "endsWithLease" },
  });
}

/** Its start was answered, and yet it goes on being in flight: the agent tells when nothing of it is left. */
export function countOn({ actor }: Call): void {
  const life = runningLife(actor);
  if (life !== undefined) actor.link.abandoned(life);
}

export function write(
  call: Call,
  id: string,
  query: Query,
  body: Uint8Array<ArrayBuffer>,
): Promise<Reply> {
  const path = `${agentPaths.processes}/${id}/stdin${queryText(query)}`;
  const headersMs = limits.processStdinWaitMs + limits.agentHeadersMs;
  return callOn(call, { kind: "process", id }, { method: "POST", path, body, headersMs });
}

export async function signal(call: Call, id: string, name: SignalName): Promise<Reply> {
  const path = `${agentPaths.processes}/${id}/signal`;
  const body = JSON.stringify({ signal: name });
  const reply = await callOn(call, { kind: "process", id }, { method: "POST", path, body });
  call.actor.work.lookSoon();
  return reply;
}

export async function end(call: Call, id: string): Promise<Reply> {
  const path = `${agentPaths.processes}/${id}`;
  const reply = await callOn(call, { kind: "process", id }, { method: "DELETE", path });
  call.actor.work.lookSoon();
  return reply;
}
