/** The verbs on processes that need more than the proxy: starting one, and reading its log as a stream. */
import { BerthError } from "../../../protocol/errors.ts";
import { agentHeaders, agentPaths } from "../../../protocol/internal/agent.ts";
import { limits } from "../../../protocol/limits.ts";
import { type LogsQuery, logOffsetHeader, type ProcessCall } from "../../../protocol/process.ts";
import type { WireResponse } from "../../shared/result.ts";
import { writeQuery } from "../agent/agent-client.ts";
import { watchEventStream } from "../agent/agent-event-streams.ts";
import { forwardResponse } from "../agent/forward-response.ts";
import { agentOfHandle } from "../agent/handles.ts";
import { type Call, start as startWork } from "./gated-call.ts";

export async function start(call: Call, process: ProcessCall): Promise<WireResponse> {
  const cwd = process.cwd ?? call.actor.facts.sandbox.spec.cwd;
  requireLease(call, process);
  const response = await startWork(call, {
    kind: "process",
    path: agentPaths.processes,
    body: { ...process, cwd },
    identity: ["process", process],
    lastsMs: limits.agentHeadersMs + replaceMs(process),
  });
  onProcessStarted(call, process, response);
  return response;
}

/** With `replace` the agent answers only when the earlier process has ended. */
export function replaceMs({ ifRunning }: ProcessCall): number {
  return ifRunning === "replace" ? limits.processReplaceMs : 0;
}

export function onProcessStarted(call: Call, process: ProcessCall, { status }: WireResponse): void {
  if (process.endsWithLease && status === 201) keepInFlight(call);
  // The process that was replaced has ended: its event is written now, not when somebody asks.
  if (process.ifRunning === "replace") call.actor.workMonitor.checkSoon();
}

/** Without a lease nothing would say when the process or terminal has to end. */
export function requireLease(
  { caller }: Call,
  { endsWithLease }: Pick<ProcessCall, "endsWithLease">,
): void {
  if (!endsWithLease || caller.token !== undefined) return;
  throw new BerthError("bad_request", "`endsWithLease` needs the token of a lease.", {
    hint: "Send the token in the header `Berth-Lease`.",
    facts: { field: "endsWithLease" },
  });
}

/** The call has its response, but its work still counts as in flight until the agent reports that nothing is left. */
export function keepInFlight({ actor }: Call): void {
  const { runningAgent } = actor;
  if (runningAgent !== undefined) actor.link.onAbandoned(runningAgent);
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
