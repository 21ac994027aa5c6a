/**
 * What this instance of the object and the agent know of each other: the handshake with a fence that locks out an
 * earlier instance, the calls that one left running, health probes, and the drain of a lost lease.
 */
import { type Incarnation, serverEnded } from "../../../core/sandbox/record.ts";
import {
  type AgentFenced,
  agentFencedSchema,
  agentPaths,
} from "../../../protocol/internal/agent.ts";
import { limits } from "../../../protocol/limits.ts";
import type { FailReason } from "../../../protocol/sandbox.ts";
import { speaksSupportedProtocol } from "../../../runtime/agent-client.ts";
import { sleep, withTimeout } from "../../shared/timeout.ts";
import type { SandboxActor } from "../actor.ts";
import { readJsonBody } from "./body-watchdog.ts";

const pauseMs = 250;

export class AgentLink {
  readonly #actor: SandboxActor;
  /** The incarnation that has completed the handshake with this instance. */
  #greetedIncarnation: string | undefined;
  #greeting: Promise<void> | undefined;
  #probing: Promise<void> | undefined;
  /** When that incarnation last answered a request of this file. */
  #lastSeen = 0;
  /** The fence of the newest count of calls that run below it and for which no caller here waits. */
  #countedFence = 0;
  #counting: Promise<unknown> = Promise.resolve();

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  /** Checks a new agent before its start is committed. An agent that does not answer passes; the next call reports it. */
  async speaksProtocol(agent: Incarnation): Promise<boolean> {
    const response = await this.#actor.agentClient.sendIfReachable(agent, {
      ...{ method: "GET", path: agentPaths.health, requestId: "start" },
      headersMs: limits.probeTimeoutMs,
    });
    await response?.body?.cancel();
    return response === undefined || speaksSupportedProtocol(response);
  }

  /** This instance started the agent, so no earlier one can have sent it anything. */
  onStarted(agent: Incarnation): void {
    this.#greetedIncarnation = agent.incarnation;
    this.#lastSeen = this.#actor.host.clock();
    this.#actor.inFlight.inherited = 0;
    this.#actor.metadataCopy.update();
    this.#actor.settingsCopy.update();
  }

  /** Makes the handshake of this instance with a running agent. Concurrent callers share it. */
  async ensureGreeted(): Promise<void> {
    const { runningAgent } = this.#actor;
    if (runningAgent === undefined || runningAgent.incarnation === this.#greetedIncarnation) return;
    this.#greeting ??= this.#greet(runningAgent).finally(() => {
      this.#greeting = undefined;
    });
    await this.#greeting;
  }

  /**
   * Call before a request to the agent. Also probes an agent that was not heard from for a while: it may have died
   * unnoticed, and a call that finds that out by itself cannot know what it did. Decisions that need no agent skip
   * the probe.
   */
  async ensureAlive(): Promise<void> {
    await this.ensureGreeted();
    await this.#probeIfQuiet();
  }

  /** For status reads: skips the handshake, which writes a row, and waits at most `waitMs` for the probe. */
  async probeBriefly(waitMs: number): Promise<void> {
    const { host } = this.#actor;
    const probing = this.#probeIfQuiet().catch(() => undefined);
    host.waitUntil(probing);
    await withTimeout(host, probing, waitMs).catch(() => undefined);
  }

  /** Probes in the background. An error is dropped: the next probe meets it again. */
  probeInBackground(): void {
    this.#actor.host.waitUntil(this.ensureAlive().catch(() => undefined));
  }

  /** After a failed call: checks whether that agent still answers, and counts what is left of the call. */
  async recheck(agent: Incarnation): Promise<void> {
    if (!this.#actor.isCurrent(agent)) return;
    this.#actor.stepLease({ type: "instance" });
    await this.#actor.host.flush();
    await this.#count(agent);
  }

  /** A caller disconnected: its command is being ended, and counts as in flight until the agent confirms that. */
  onAbandoned(agent: Incarnation): void {
    if (!this.#actor.isCurrent(agent)) return;
    this.#actor.inFlight.inherited++;
    this.#actor.host.waitUntil(this.recheck(agent));
  }

  /** Resolves when nothing below the fence is left, or the container is gone. Never rejects. */
  async drain(fence: number): Promise<void> {
    const { host } = this.#actor;
    for (;;) {
      const lease = this.#actor.existing?.lease;
      if (lease?.state.name !== "draining" || lease.state.fence !== fence) return;
      await host.flush();
      if (await this.#drained(lease.fence, lease.state.replace)) {
        this.#actor.inFlight.inherited = 0;
        if (this.#actor.existing !== undefined) this.#actor.stepLease({ type: "drained", fence });
        return;
      }
      await sleep(host, pauseMs);
    }
  }

  /** Concurrent callers share one probe. An agent that was heard from just now is not probed. */
  async #probeIfQuiet(): Promise<void> {
    const { runningAgent, freeze, host } = this.#actor;
    // During a snapshot silence means nothing.
    const isQuiet = !freeze.isActive && host.clock() - this.#lastSeen >= limits.agentProbeAfterMs;
    if (runningAgent === undefined || !isQuiet) return;
    this.#probing ??= this.#probe(runningAgent).finally(() => {
      this.#probing = undefined;
    });
    await this.#probing;
  }

  async #probe(agent: Incarnation): Promise<void> {
    const call = { method: "GET", path: agentPaths.health, requestId: "alive" } as const;
    const response = await this.#actor.agentClient.sendIfReachable(agent, call);
    if (response === undefined) return this.recheck(agent);
    await response.body?.cancel();
    this.#lastSeen = this.#actor.host.clock();
  }

  async #greet(agent: Incarnation): Promise<void> {
    this.#actor.stepLease({ type: "instance" });
    await this.#actor.host.flush();
    if (!(await this.#count(agent))) return;
    this.#greetedIncarnation = agent.incarnation;
    this.#actor.metadataCopy.update();
    this.#actor.settingsCopy.update();
  }

  /** Counts run one after the other: the newest has the highest fence and is right about all before it. */
  #count(agent: Incarnation): Promise<boolean> {
    const count = this.#counting.then(() => this.#countOnce(agent));
    this.#counting = count.catch(() => undefined);
    return count;
  }

  /** Raises the agent's fence: nothing below it begins any more, and what has begun counts until it has ended. */
  async #countOnce(agent: Incarnation): Promise<boolean> {
    if (!this.#actor.isCurrent(agent)) return false;
    const { fence } = this.#actor.facts.lease;
    this.#countedFence = fence;
    const fenceCall = { fence, drain: false, waitMs: 0 };
    const fenced = await this.#requestFence(agent, fenceCall, limits.probeTimeoutMs);
    if (!this.#actor.isCurrent(agent)) return false;
    if (fenced === undefined || !fenced.speaksProtocol) {
      // Until the loss is committed, the next caller probes again and waits for that.
      this.#lastSeen = 0;
      await this.#commitLoss(agent, fenced === undefined ? undefined : "agent_unsupported");
      return false;
    }
    this.#lastSeen = this.#actor.host.clock();
    this.#actor.inFlight.inherited = fenced.left;
    this.#actor.inFlightChanged();
    if (fenced.left > 0) this.#actor.host.waitUntil(this.#awaitInherited(agent, fence));
    return true;
  }

  /** Waits until the inherited calls have ended. A newer count takes over. */
  async #awaitInherited(agent: Incarnation, fence: number): Promise<void> {
    while (this.#actor.inFlight.inherited > 0) {
      const fenceCall = { fence, drain: false, waitMs: limits.agentHeadersMs / 3 };
      const fenced = await this.#requestFence(agent, fenceCall, limits.agentHeadersMs);
      if (!this.#actor.isCurrent(agent) || this.#countedFence !== fence) return;
      if (fenced === undefined) return this.#commitLoss(agent);
      this.#actor.inFlight.inherited = fenced.left;
      this.#actor.inFlightChanged();
    }
  }

  async #drained(fence: number, replace: boolean): Promise<boolean> {
    const state = this.#actor.existing?.sandbox.state;
    if (state?.name !== "running") return state?.name !== "pausing" && state?.name !== "starting";
    const { life: agent } = state;
    if (replace) {
      try {
        await this.#actor.container.destroy("keep");
      } catch {
        return false;
      }
      await this.#commitLoss(agent);
      return true;
    }
    const fenceCall = { fence, drain: true, waitMs: limits.agentHeadersMs / 3 };
    const fenced = await this.#requestFence(agent, fenceCall, limits.agentHeadersMs);
    return fenced?.left === 0;
  }

  async #commitLoss(agent: Incarnation, knownReason?: FailReason): Promise<void> {
    const loss = knownReason === undefined ? await findLossReason(this.#actor, agent) : undefined;
    if (!this.#actor.isCurrent(agent)) return;
    const reason = knownReason ?? loss?.reason ?? "container_lost";
    const { incarnation } = agent;
    this.#actor.stepSandbox(
      reason === serverEnded
        ? { type: "server_ended", incarnation }
        : { type: "lost", incarnation, reason, message: loss?.message },
    );
    this.#actor.inFlight.inherited = 0;
    this.#actor.inFlightChanged();
  }

  async #requestFence(
    agent: Incarnation,
    call: { fence: number; drain: boolean; waitMs: number },
    headersMs: number,
  ): Promise<(AgentFenced & { speaksProtocol: boolean }) | undefined> {
    const response = await this.#actor.agentClient.sendIfReachable(agent, {
      ...{ method: "POST", path: agentPaths.fence, requestId: "fence" },
      ...{ body: JSON.stringify(call), headersMs },
    });
    if (response === undefined) return undefined;
    const json = await readJsonBody(response, this.#actor.freeze.startTimer);
    const fenced = agentFencedSchema.safeParse(json);
    if (!response.ok || !fenced.success) return undefined;
    return { ...fenced.data, speaksProtocol: speaksSupportedProtocol(response) };
  }
}

/** `message`: why, in the words of the platform. */
type Loss = { reason: FailReason | typeof serverEnded; message?: string | undefined };

/**
 * Asks the engine why an incarnation has ended. An engine that is not there has ended with its containers. Without an
 * answer in time the container counts as lost.
 */
async function findLossReason(actor: SandboxActor, agent: Incarnation): Promise<Loss> {
  const { host, container } = actor;
  const [startId = ""] = agent.incarnation.split(".");
  // The engine waits this long for the end, in case the agent only seems to be gone; the response takes some more.
  const { endReasonWaitMs } = limits;
  const exitReport = container.monitor(startId, endReasonWaitMs).catch(() => "no engine" as const);
  const exit = await withTimeout(host, exitReport, 2 * endReasonWaitMs).catch(() => undefined);
  if (exit === undefined) return { reason: "container_lost" };
  if (exit === "no engine") {
    return { reason: container.keepsFiles ? serverEnded : "container_lost" };
  }
  const { reason, signal, exitCode, message } = exit;
  host.log({
    ...{ sandbox: actor.existing?.sandbox.spec.id, startId, lost: reason },
    ...{ exitCode: exitCode ?? undefined, signal: signal ?? undefined, message },
  });
  if (reason === "engine_restarted" && container.keepsFiles) return { reason: serverEnded };
  return { reason: reason === "out_of_memory" ? reason : "container_lost", message };
}
