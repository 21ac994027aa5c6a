/** Asks the agent what runs and what has ended. Each exit becomes an event exactly once, also across an eviction. */
import type { Incarnation } from "../../../core/sandbox/record.ts";
import type { EventData } from "../../../protocol/event.ts";
import {
  type AgentEnding,
  type AgentWork,
  agentPaths,
  agentWorkSchema,
} from "../../../protocol/internal/agent.ts";
import { limits } from "../../../protocol/limits.ts";
import { AgentUnreachable } from "../../../runtime/agent-client.ts";
import type { SandboxActor } from "../actor.ts";
import type { Host } from "../host.ts";
import { readJsonBody } from "./body-watchdog.ts";

export class WorkMonitor {
  readonly #actor: SandboxActor;
  #checking: Promise<void> | undefined;
  #mustRepeat = false;
  #isHoldingBack = false;
  /** Handles whose start event is not committed yet: their exit events wait for it. */
  readonly #starting = new Map<string, number>();

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  /** For how long the sandbox has been idle; undefined if its container did not say. */
  async probeIdleMs(): Promise<number | undefined> {
    const { runningAgent: agent } = this.#actor;
    if (agent === undefined) return undefined;
    const work = await this.#request(agent);
    if (!this.#actor.isCurrent(agent)) return undefined;
    if (work === undefined || work === "unanswered") {
      // An agent without processes: only calls in flight keep it busy.
      return work === undefined ? Number.POSITIVE_INFINITY : undefined;
    }
    this.#recordExits(agent, work.endings);
    return work.idleMs;
  }

  /** Delays the exit event of `id` until the returned function is called, once. */
  deferExitEvent(id: string): () => void {
    this.#starting.set(id, (this.#starting.get(id) ?? 0) + 1);
    return () => {
      const others = (this.#starting.get(id) ?? 1) - 1;
      if (others > 0) this.#starting.set(id, others);
      else this.#starting.delete(id);
      if (this.#isHoldingBack) this.checkSoon();
    };
  }

  /** Something may have ended. A call during a check causes one more check. */
  checkSoon(): void {
    this.#mustRepeat = true;
    this.#checking ??= this.#checkUntilSettled().finally(() => {
      this.#checking = undefined;
    });
    this.#actor.host.waitUntil(this.#checking);
  }

  async #checkUntilSettled(): Promise<void> {
    while (this.#mustRepeat) {
      this.#mustRepeat = false;
      await this.probeIdleMs();
    }
  }

  #recordExits(agent: Incarnation, endings: readonly AgentEnding[]): void {
    const { host } = this.#actor;
    const { incarnation } = agent;
    const reported = reportedUntil(host, incarnation);
    const unreported = endings.filter(({ n }) => n > reported);
    const firstHeld = unreported.findIndex(({ id }) => this.#starting.has(id));
    this.#isHoldingBack = firstHeld >= 0;
    const fresh = firstHeld < 0 ? unreported : unreported.slice(0, firstHeld);
    const last = fresh.at(-1);
    if (last === undefined) return;
    saveReportedUntil(host, incarnation, last.n);
    const events = fresh.map(
      ({ kind, what = "ended", ...ending }): EventData => ({
        ...{ type: kind, what, ...ending, incarnation },
      }),
    );
    this.#actor.commit({}, events, "something ended");
  }

  async #request(agent: Incarnation): Promise<AgentWork | "unanswered" | undefined> {
    const { host, agentClient, freeze, link } = this.#actor;
    const path = `${agentPaths.work}?after=${reportedUntil(host, agent.incarnation)}`;
    try {
      const response = await agentClient.send(agent, {
        ...{ method: "GET", path, requestId: "work" },
        headersMs: limits.probeTimeoutMs,
      });
      const json = await readJsonBody(response, freeze.startTimer);
      const work = agentWorkSchema.safeParse(json);
      if (response.ok && work.success) return work.data;
      // A truncated response says nothing: what runs has not ended because of it.
      if (json !== undefined) return undefined;
      await link.recheck(agent);
      return "unanswered";
    } catch (error) {
      if (!(error instanceof AgentUnreachable)) throw error;
      await link.recheck(agent);
      return "unanswered";
    }
  }
}

/** Up to which exit of this incarnation the events report. */
function reportedUntil(host: Host, incarnation: string): number {
  const [row] = host.sql<{ n: number }>(
    "SELECT n FROM told_ending WHERE incarnation = ?",
    incarnation,
  );
  return row?.n ?? 0;
}

/** Written in the same commit as the events. */
function saveReportedUntil(host: Host, incarnation: string, n: number): void {
  host.sql("INSERT OR REPLACE INTO told_ending VALUES (1, ?, ?)", incarnation, n);
}
