/** The verbs on processes and sessions that need more than the proxy: what starts something, and logs as a stream. */
import { agentHeaders, agentPaths } from "../../../protocol/internal/agent.ts";
import { limits } from "../../../protocol/limits.ts";
import { type LogsQuery, logOffsetHeader, type ProcessCall } from "../../../protocol/process.ts";
import type { SessionCall, SessionExecCall } from "../../../protocol/session.ts";
import type { WireResponse } from "../../shared/result.ts";
import { writeQuery } from "../agent/agent-client.ts";
import { watchEventStream } from "../agent/agent-event-streams.ts";
import { forwardResponse } from "../agent/forward-response.ts";
import { agentOfHandle } from "../agent/handles.ts";
import { runCommand } from "./exec.ts";
import { type Call, type StartOptions, start, withDefaults } from "./gated-call.ts";

/** A command in a session waits for all commands before it, each of which has a timeout. */
const queueMaxMs = limits.execTimeoutMaxMs * (1 + limits.sessionWaitersMax);

export function createSession(call: Call, session: SessionCall): Promise<WireResponse> {
  const body = withDefaults(call, session);
  return start(call, { kind: "session", path: agentPaths.sessions, body });
}

export async function execInSession(
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

export function startProcess(call: Call, process: ProcessCall): Promise<WireResponse> {
  return startOrReplace(call, process, {
    path: agentPaths.processes,
    body: withDefaults(call, process),
    identity: ["process", process],
    lastsMs: limits.agentHeadersMs,
  });
}

/** The process starts in the current folder of the session, unless the call names another. */
export function startProcessInSession(
  call: Call,
  session: string,
  process: ProcessCall,
): Promise<WireResponse> {
  return startOrReplace(call, process, {
    path: `${agentPaths.sessions}/${session}/processes`,
    body: process,
    session,
    identity: ["session process", session, process],
    lastsMs: queueMaxMs,
  });
}

async function startOrReplace(
  call: Call,
  { ifRunning }: ProcessCall,
  { lastsMs, ...options }: Omit<StartOptions, "kind"> & { lastsMs: number },
): Promise<WireResponse> {
  if (ifRunning !== "replace") return start(call, { ...options, kind: "process", lastsMs });
  // The agent answers only when the earlier process has ended.
  const withReplaceMs = lastsMs + limits.processReplaceMs;
  const response = await start(call, { ...options, kind: "process", lastsMs: withReplaceMs });
  // The event of the process that was replaced is written now, not when somebody asks.
  call.actor.workMonitor.checkSoon();
  return response;
}

export async function readLogs(
  { actor, requestId }: Omit<Call, "caller">,
  id: string,
  { reader, ...query }: LogsQuery,
  raw: boolean,
): Promise<WireResponse> {
  const headers = {
    accept: raw ? "application/octet-stream" : "text/event-stream",
    ...(reader === undefined ? {} : { [agentHeaders.reader]: reader }),
  };
  const { response, agent } = await actor.agentClient.sendToCurrent(
    () => agentOfHandle(actor, { kind: "process", id }),
    {
      method: "GET",
      path: `${agentPaths.processes}/${id}/logs${writeQuery(query)}`,
      headers,
      // A raw response starts with the first byte, and the process may write that late.
      ...(raw ? { headersMs: limits.processTimeoutMaxMs } : {}),
      requestId,
    },
  );
  if (!response.ok) return forwardResponse(actor, response, { agent, requestId });
  return raw ? toRawResponse(response) : watchEventStream(actor, agent, response, requestId);
}

/** The platform pumps the body: reading it here would cost more than the rest of the way. */
function toRawResponse(response: Response): Response {
  const headers = new Headers({
    "content-type": "application/octet-stream",
    "cache-control": "no-store",
  });
  for (const name of [logOffsetHeader, "content-length"]) {
    const value = response.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  return new Response(response.body, { status: response.status, headers });
}
