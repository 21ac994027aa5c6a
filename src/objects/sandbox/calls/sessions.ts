/**
 * Owns the gated calls on sessions: make, run in, start a process from, end.
 * Does not own looking at them (look.ts), nor the shell: the agent has that.
 */
import { agentPaths } from "../../../protocol/internal/agent.ts";
import { limits } from "../../../protocol/limits.ts";
import type { ProcessCall } from "../../../protocol/process.ts";
import type { SessionCall, SessionExecCall } from "../../../protocol/session.ts";
import type { Reply } from "../../shared/result.ts";
import { refuseUnknown } from "../agent/handles.ts";
import { runCommand } from "./exec.ts";
import type { ExecLog } from "./exec-log.ts";
import { begin, type Call, callOn } from "./gated-call.ts";
import { demandLease, replaceMs, started } from "./processes.ts";

/** A call waits for the commands before it, each of which has a limit. */
const turnMaxMs = limits.execTimeoutMaxMs * (1 + limits.sessionWaitersMax);

export function create(call: Call, session: SessionCall): Promise<Reply> {
  const cwd = session.cwd ?? call.actor.facts.sandbox.spec.cwd;
  return begin(call, {
    kind: "session",
    id: session.id,
    send: (id) => ({
      method: "POST",
      path: agentPaths.sessions,
      body: JSON.stringify({ ...session, cwd, id }),
    }),
  });
}

export async function run(
  { actor, caller, requestId }: Call,
  log: ExecLog,
  id: string,
  command: SessionExecCall,
): Promise<Reply> {
  const session = { kind: "session", id } as const;
  refuseUnknown(actor, session);
  const reply = await runCommand(actor, log, caller, {
    requestId,
    same: ["session exec", id, command],
    lastsMs: turnMaxMs,
    send(execId, more) {
      refuseUnknown(actor, session);
      const body = JSON.stringify({ ...command, execId, requestId, ...more });
      return { method: "POST", path: `${agentPaths.sessions}/${id}/exec`, body, requestId };
    },
  });
  // What it answers with may be the end of the session.
  if (reply.status !== 200) actor.work.lookSoon();
  return reply;
}

/** Begins in the session's own folder unless it names another. */
export async function startProcess(
  call: Call,
  session: string,
  process: ProcessCall,
): Promise<Reply> {
  demandLease(call, process);
  const lastsMs = turnMaxMs + replaceMs(process);
  const reply = await begin(call, {
    ...{ kind: "process", session, lastsMs, same: ["session process", session, process] },
    send: (id) => ({
      method: "POST",
      path: `${agentPaths.sessions}/${session}/processes`,
      body: JSON.stringify({ ...process, id }),
      headersMs: lastsMs,
    }),
  });
  started(call, process, reply);
  return reply;
}

export async function end(call: Call, id: string): Promise<Reply> {
  const path = `${agentPaths.sessions}/${id}`;
  const reply = await callOn(call, { kind: "session", id }, { method: "DELETE", path });
  call.actor.work.lookSoon();
  return reply;
}
