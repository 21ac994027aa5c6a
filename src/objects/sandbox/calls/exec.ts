/**
 * Runs one command: past the lease, to the agent, and the agent's response back as it was written.
 */
import type { ExecCall } from "../../../protocol/exec.ts";
import { agentPaths } from "../../../protocol/internal/agent.ts";
import { limits } from "../../../protocol/limits.ts";
import type { WireResponse } from "../../shared/result.ts";
import type { SandboxActor } from "../actor.ts";
import type { AgentRequest } from "../agent/agent-client.ts";
import { forwardResponse, forwardShort } from "../agent/forward-response.ts";
import { runIdempotent } from "../idempotency/idempotent-call.ts";
import { admitGatedCall, type GatedCaller } from "../lease/gated-admission.ts";
import type { ExecLog } from "./exec-log.ts";

export async function exec(
  actor: SandboxActor,
  log: ExecLog,
  call: ExecCall,
  caller: GatedCaller,
  requestId: string,
): Promise<WireResponse> {
  const makeRequest = (execId: string, more: { keep?: true }): AgentRequest => {
    const cwd = call.cwd ?? actor.facts.sandbox.spec.cwd;
    const body = JSON.stringify({ ...call, cwd, execId, requestId, ...more });
    return { method: "POST", path: agentPaths.exec, body, requestId };
  };
  const command = { requestId, lastsMs: call.timeoutMs, identity: ["exec", call], makeRequest };
  return runCommand(actor, log, caller, command);
}

/** A command whose output is returned when it has ended, by itself or in a session. */
export type Command = {
  requestId: string;
  /** Calls with the same idempotency key must be equal in this. */
  identity: readonly unknown[];
  lastsMs: number;
  makeRequest: (execId: string, more: { keep?: true }) => AgentRequest;
};

export async function runCommand(
  actor: SandboxActor,
  log: ExecLog,
  caller: GatedCaller,
  { requestId, identity, lastsMs, makeRequest }: Command,
): Promise<WireResponse> {
  const startedAt = actor.host.clock();
  const generateId = () => `x${actor.host.randomId(15)}`;
  const finished = (execId: string) => log.finished(execId, actor.host.clock() - startedAt);
  if (caller.key !== undefined) {
    return runIdempotent(actor, caller, caller.key, {
      ...{ identity, requestId, generateId, onDone: finished },
      lastsMs: lastsMs + limits.execKillGraceMs,
      send: (execId) => makeRequest(execId, { keep: true }),
      lookUp: (execId) => ({ method: "GET", path: `${agentPaths.execs}/${execId}`, requestId }),
    });
  }
  const admitted = await admitGatedCall(actor, caller);
  const { agent } = admitted;
  const execId = generateId();
  const onDone = () => {
    admitted.end();
    finished(execId);
  };
  const onReaderLeft = () => {
    actor.link.onAbandoned(agent);
    onDone();
  };
  try {
    const response = await actor.agentClient.sendCommand(admitted, makeRequest(execId, {}), execId);
    const forward = { agent, requestId, onDone, onReaderLeft };
    if (response instanceof Response) return await forwardResponse(actor, response, forward);
    return await forwardShort(actor, response, forward);
  } catch (error) {
    onDone();
    throw error;
  }
}
