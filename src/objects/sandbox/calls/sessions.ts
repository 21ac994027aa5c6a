/** The verbs on sessions that need more than the proxy. */
import { agentPaths } from "../../../protocol/internal/agent.ts";
import { limits } from "../../../protocol/limits.ts";
import type { ProcessCall } from "../../../protocol/process.ts";
import type { SessionCall, SessionExecCall } from "../../../protocol/session.ts";
import type { WireResponse } from "../../shared/result.ts";
import { runCommand } from "./exec.ts";
import { type Call, start } from "./gated-call.ts";
import { onProcessStarted, replaceMs, requireLease } from "./processes.ts";

/** A command waits for all commands before it, each of which has a timeout. */
const queueMaxMs = limits.execTimeoutMaxMs * (1 + limits.sessionWaitersMax);

export function create(call: Call, session: SessionCall): Promise<WireResponse> {
  const cwd = session.cwd ?? call.actor.facts.sandbox.spec.cwd;
  return start(call, {
    kind: "session",
    path: agentPaths.sessions,
    body: { ...session, cwd },
  });
}

export async function exec(
  call: Call,
  session: string,
  command: SessionExecCall,
): Promise<WireResponse> {
  const response = await runCommand(call, {
    path: `${agentPaths.sessions}/${session}/exec`,
    body: command,
    session,
    identity: ["session exec", session, command],
    lastsMs: queueMaxMs,
  });
  // The command may have ended the session.
  if (response.status !== 200) call.actor.workMonitor.checkSoon();
  return response;
}

/** The process starts in the current folder of the session, unless the call names another. */
export async function startProcess(
  call: Call,
  session: string,
  process: ProcessCall,
): Promise<WireResponse> {
  requireLease(call, process);
  const response = await start(call, {
    kind: "process",
    path: `${agentPaths.sessions}/${session}/processes`,
    body: process,
    session,
    identity: ["session process", session, process],
    lastsMs: queueMaxMs + replaceMs(process),
  });
  onProcessStarted(call, process, response);
  return response;
}
