/** Sends requests to the agent of one sandbox. Each waits for the end of a snapshot, which freezes the agent. */
import { checkLease } from "../../../core/lease/refusals.ts";
import type { Incarnation } from "../../../core/sandbox/record.ts";
import { BerthError, errors } from "../../../protocol/errors.ts";
import { agentPaths } from "../../../protocol/internal/agent.ts";
import { type ChannelResult, deferredStatus } from "../../../protocol/internal/agent-channel.ts";
import { limits } from "../../../protocol/limits.ts";
import {
  type AgentCall,
  type AgentCallDeps,
  AgentUnreachable,
  callAgent,
} from "../../../runtime/agent-client.ts";
import type { SandboxActor } from "../actor.ts";
import type { AdmittedCall } from "../lease/gated-admission.ts";

/** `headersMs`: the agent may be silent for this long before its response begins. */
export type AgentRequest = Omit<AgentCall, "fence"> & { headersMs?: number };

/** A command, whose body is always JSON. */
export type CommandRequest = AgentRequest & { body: string };

export type AgentResponse = { response: Response; agent: Incarnation };

/** Longer than any snapshot during which the agent cannot answer. */
const freezeWaitMs = limits.snapshotTimeoutMs + limits.waitMaxMs;

export class AgentClient {
  readonly #actor: SandboxActor;
  #reach: AgentCallDeps | undefined;
  #patientReach: AgentCallDeps | undefined;

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  /** Waits until the agent is not frozen and was heard from recently. Call before a call is checked for admission. */
  untilReachable(): Promise<void> {
    const { freeze, link } = this.#actor;
    return freeze.isActive ? freeze.untilOver().then(() => link.ensureAlive()) : link.ensureAlive();
  }

  /** One request to one incarnation. Rejects with AgentUnreachable if that does not respond. */
  send(agent: Incarnation, request: AgentRequest & Pick<AgentCall, "fence">): Promise<Response> {
    this.#reach ??= this.#reachWithin(limits.waitMaxMs);
    return callAgent(this.#reach, agent, request, request.headersMs);
  }

  /** A request of the object itself: like `send`, but waits for as long as a snapshot may take. */
  sendInternal(agent: Incarnation, request: AgentRequest): Promise<Response> {
    this.#patientReach ??= this.#reachWithin(freezeWaitMs);
    return callAgent(this.#patientReach, agent, request, request.headersMs);
  }

  /** Like `sendInternal`. Undefined if that incarnation does not respond. */
  async sendIfReachable(agent: Incarnation, request: AgentRequest): Promise<Response | undefined> {
    try {
      return await this.sendInternal(agent, request);
    } catch (error) {
      if (error instanceof AgentUnreachable) return undefined;
      throw error;
    }
  }

  /** The request of an admitted call, with its fence. An agent that does not respond has interrupted the call. */
  sendGated(call: AdmittedCall, request: AgentRequest): Promise<Response> {
    return this.#sendFenced(call, request, (fence) => this.#sendOnce(call.agent, request, fence));
  }

  /** A command of an admitted call: goes over the channel if that is open, because its response is usually short. */
  sendCommand(
    call: AdmittedCall,
    request: CommandRequest,
    execId: string,
  ): Promise<Response | ChannelResult> {
    return this.#sendFenced(call, request, (fence) =>
      this.#sendOverChannel(call.agent, request, execId, fence),
    );
  }

  /**
   * A request that any incarnation may answer: if the current one has ended, the next one gets it. `findAgent` throws, or
   * returns undefined if none runs; then nothing is sent.
   */
  async sendToCurrent<Found extends Incarnation | undefined>(
    findAgent: () => Found | Promise<Found>,
    request: AgentRequest,
  ): Promise<AgentResponse | Extract<Found, undefined>> {
    for (;;) {
      const agent = await findAgent();
      if (agent === undefined) return agent as Extract<Found, undefined>;
      try {
        return { response: await this.send(agent, request), agent };
      } catch (error) {
        if (!(error instanceof AgentUnreachable)) throw error;
      }
      await this.#actor.link.recheck(agent);
      if (this.#actor.runningAgent?.incarnation === agent.incarnation) {
        throw new BerthError("unavailable", "The sandbox does not respond.", {
          hint: "Try again in a moment.",
        });
      }
    }
  }

  /** The error of a call whose agent did not respond; checks first whether that agent has ended. */
  async interrupted(agent: Incarnation, admitted: true | "unknown"): Promise<BerthError> {
    if (this.#actor.existing !== undefined) await this.#actor.link.recheck(agent);
    return interruptedError(admitted);
  }

  #reachWithin(freezeMaxMs: number): AgentCallDeps {
    const { container, freeze } = this.#actor;
    return {
      runtime: container,
      startTimer: freeze.startTimer,
      waitUntilThawed: () => freeze.untilOver(freezeMaxMs),
    };
  }

  /** Sends again with the newest fence if that has grown on the way and the caller still has its lease. */
  async #sendFenced<Result extends Response | ChannelResult>(
    { fence: admittedFence, token }: AdmittedCall,
    { body }: AgentRequest,
    send: (fence: number) => Promise<Result>,
  ): Promise<Result> {
    let fence = admittedFence;
    for (;;) {
      const result = await send(fence);
      if (result.status !== errors.stale_fence.status) return result;
      if (body instanceof ReadableStream) {
        await discardBody(result);
        throw new BerthError("unavailable", "The lease changed during the upload.", {
          hint: "Nothing was written. Send it again.",
        });
      }
      const lease = this.#actor.existing?.lease;
      if (lease === undefined || lease.fence === fence) return result;
      await discardBody(result);
      const refused = token === undefined ? undefined : checkLease(lease, token);
      if (refused !== undefined) throw refused;
      fence = lease.fence;
    }
  }

  async #sendOverChannel(
    agent: Incarnation,
    request: CommandRequest,
    execId: string,
    fence: number,
  ): Promise<Response | ChannelResult> {
    const { freeze, channel } = this.#actor;
    if (freeze.isActive) await freeze.untilOver();
    const { path, requestId, body } = request;
    const responding = channel.request(agent, { id: execId, path, fence, requestId, body });
    if (responding === undefined) return this.#sendOnce(agent, request, fence);
    const result = await responding.catch(() => undefined);
    if (result === undefined) throw await this.interrupted(agent, "unknown");
    return result.status === deferredStatus
      ? this.#fetchDeferred(agent, execId, requestId)
      : result;
  }

  /** Fetches the response of a command that the agent has accepted. Without it the call is interrupted. */
  async #fetchDeferred(agent: Incarnation, execId: string, requestId: string): Promise<Response> {
    const request = { method: "GET", path: `${agentPaths.deferred}/${execId}`, requestId } as const;
    const response = await this.sendInternal(agent, request).catch(() => undefined);
    if (response !== undefined && response.status !== errors.not_found.status) return response;
    await response?.body?.cancel().catch(() => undefined);
    throw await this.interrupted(agent, true);
  }

  async #sendOnce(agent: Incarnation, request: AgentRequest, fence: number): Promise<Response> {
    try {
      return await this.send(agent, { ...request, fence });
    } catch (error) {
      if (error instanceof AgentUnreachable) throw await this.interrupted(agent, "unknown");
      throw error;
    }
  }
}

export function interruptedError(admitted: true | "unknown"): BerthError {
  return new BerthError(
    "operation_interrupted",
    "The container was lost while the call was running.",
    {
      hint: "The call may have taken effect. Check before you retry.",
      facts: { admitted },
    },
  );
}

async function discardBody(result: Response | ChannelResult): Promise<void> {
  if (result instanceof Response) await result.body?.cancel();
}

/** The parameters of a checked request. */
export type Query = Record<string, string | number | boolean | undefined>;

/** Leaves out the parameters that were not given. */
export function writeQuery(query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const pairs = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return given.length === 0 ? "" : `?${pairs}`;
}
