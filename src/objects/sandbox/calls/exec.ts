/** Runs one command, by itself or in a session: past the lease, to the agent, and its response back as it was written. */
import type { EventData } from "../../../protocol/event.ts";
import type { ExecCall } from "../../../protocol/exec.ts";
import { agentPaths } from "../../../protocol/internal/agent.ts";
import { limits } from "../../../protocol/limits.ts";
import type { WireResponse } from "../../shared/result.ts";
import type { SandboxActor } from "../actor.ts";
import type { CommandRequest } from "../agent/agent-client.ts";
import { forwardResponse, forwardShort } from "../agent/forward-response.ts";
import { refuseUnknown } from "../agent/handles.ts";
import { runIdempotent } from "../idempotency/idempotent-call.ts";
import { admitGatedCall } from "../lease/gated-admission.ts";
import { type Call, withDefaults } from "./gated-call.ts";

export function exec(call: Call, command: ExecCall): Promise<WireResponse> {
  return runCommand(call, {
    path: agentPaths.exec,
    body: withDefaults(call, command),
    identity: ["exec", command],
    lastsMs: command.timeoutMs,
  });
}

/** A command whose output is returned when it has ended. */
type Command = {
  path: string;
  body: object;
  /** The session in which it runs. */
  session?: string;
  /** Calls with the same idempotency key must be equal in this. */
  identity: readonly unknown[];
  lastsMs: number;
};

export async function runCommand(
  { actor, caller, requestId }: Call,
  { path, body, session, identity, lastsMs }: Command,
): Promise<WireResponse> {
  const startedAt = actor.host.clock();
  const { callId } = caller;
  const cancellable = callId === undefined ? undefined : actor.cancellable.begin(callId);
  const generateId = () => `x${actor.host.randomId(15)}`;
  const finished = (execId: string) => {
    cancellable?.end();
    actor.execLog.finished(execId, actor.host.clock() - startedAt);
  };
  const refuseUnknownSession = () => {
    if (session !== undefined) refuseUnknown(actor, { kind: "session", id: session });
  };
  const makeRequest = (execId: string, more: { keep?: true }): CommandRequest => {
    refuseUnknownSession();
    cancellable?.refuseCancelled();
    if (cancellable !== undefined && actor.runningAgent !== undefined)
      cancellable.sent = { agent: actor.runningAgent, execId };
    const json = JSON.stringify({ ...body, execId, requestId, ...more });
    return { method: "POST", path, body: json, requestId };
  };
  refuseUnknownSession();
  if (caller.key !== undefined) {
    return runIdempotent({
      ...{ actor, caller, key: caller.key, requestId, identity, generateId, onDone: finished },
      lastsMs: lastsMs + limits.execKillGraceMs,
      send: (execId) => makeRequest(execId, { keep: true }),
      lookUp: (execId) => ({ method: "GET", path: `${agentPaths.execs}/${execId}`, requestId }),
    });
  }
  const admitted = await admitGatedCall(actor, caller, () => cancellable?.refuseCancelled()).catch(
    (error: unknown) => {
      cancellable?.end();
      throw error;
    },
  );
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

/**
 * Writes finished commands to the events, in batches of at most one per second, because a row for each would cost more
 * than the command. A batch that is not yet written is lost with the object.
 */
export class ExecLog {
  readonly #actor: SandboxActor;
  #batch: Extract<EventData, { type: "exec" }> | undefined;

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  finished(execId: string, durationMs: number): void {
    if (this.#batch === undefined) {
      this.#batch = { type: "exec", count: 0, execs: [] };
      this.#actor.host.setTimer(limits.eventsExecsEveryMs, () => this.#flush());
    }
    this.#batch.count++;
    if (this.#batch.execs.length < limits.eventsExecsMax) {
      this.#batch.execs.push({ execId, durationMs });
    }
  }

  #flush(): void {
    const batch = this.#batch;
    this.#batch = undefined;
    if (batch !== undefined && this.#actor.existing !== undefined) {
      this.#actor.commit({}, [batch], "commands");
    }
  }
}
