/**
 * The verbs on sessions that need more than the proxy: creating one, running a command in it, starting a process from
 * it.
 */
import { agentPaths } from "../../../protocol/internal/agent.ts";
import { limits } from "../../../protocol/limits.ts";
import type { ProcessCall } from "../../../protocol/process.ts";
import type { SessionCall, SessionExecCall } from "../../../protocol/session.ts";
import type { WireResponse } from "../../shared/result.ts";
import { refuseUnknown } from "../agent/handles.ts";
import { runCommand } from "./exec.ts";
import type { ExecLog } from "./exec-log.ts";
import { type Call, start } from "./gated-call.ts";
import { onProcessStarted, replaceMs, requireLease } from "./processes.ts";

/** A command waits for all commands before it, each of which has a timeout. */
const queueMaxMs = limits.execTimeoutMaxMs * (1 + limits.sessionWaitersMax);

export function create(call: Call, session: SessionCall): Promise<WireResponse> {
  const cwd = session.cwd ?? call.actor.facts.sandbox.spec.cwd;
  return start(call, {
    kind: "session",
    id: session.id,
    send: (id) => ({
      method: "POST",
      path: agentPaths.sessions,
      body: JSON.stringify({ ...session, cwd, id }),
    }),
  });
}

export async function exec(
  { actor, caller, requestId }: Call,
  log: ExecLog,
  id: string,
  command: SessionExecCall,
): Promise<WireResponse> {
  const session = { kind: "session", id } as const;
  refuseUnknown(actor, session);
  const response = await runCommand(actor, log, caller, {
    requestId,
    identity: ["session exec", id, command],
    lastsMs: queueMaxMs,
    makeRequest(execId, more) {
      refuseUnknown(actor, session);
      const body = JSON.stringify({ ...command, execId, requestId, ...more });
      return { method: "POST", path: `${agentPaths.sessions}/${id}/exec`, body, requestId };
    },
  });
  // The command may have ended the session.
  if (response.status !== 200) actor.workMonitor.checkSoon();
  return response;
}

/** The process starts in the current folder of the session, unless the call names another. */
export async function startProcess(
  call: Call,
  session: string,
  process: ProcessCall,
): Promise<WireResponse> {
  requireLease(call, process);
  const lastsMs = queueMaxMs + replaceMs(process);
  const response = await start(call, {
    ...{ kind: "process", session, lastsMs, identity: ["session process", session, process] },
    send: (id) => ({
      method: "POST",
      path: `${agentPaths.sessions}/${session}/processes`,
      body: JSON.stringify({ ...process, id }),
      headersMs: lastsMs,
    }),
  });
  onProcessStarted(call, process, response);
  return response;
}
