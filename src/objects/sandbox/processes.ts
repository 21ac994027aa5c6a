/**
 * Owns the gated calls on processes: start, write to, signal, end.
 * Does not own looking at them (look.ts), nor what becomes of them: the agent has that.
 */
import { agentPaths } from "../../protocol/agent.ts";
import { limits } from "../../protocol/limits.ts";
import type { ProcessCall, SignalName } from "../../protocol/process.ts";
import type { Reply } from "../answer.ts";
import { queryText } from "./asked-query.ts";
import { begin, type Call, callOn } from "./gated-call.ts";
import type { Query } from "./work-call.ts";

export function start(call: Call, process: ProcessCall): Promise<Reply> {
  const cwd = process.cwd ?? call.actor.facts.sandbox.spec.cwd;
  return begin(call, {
    kind: "process",
    same: ["process", process],
    send: (id) => ({
      method: "POST",
      path: agentPaths.processes,
      body: JSON.stringify({ ...process, cwd, id }),
    }),
  });
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
