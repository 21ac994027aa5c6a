/**
 * Owns asking the agent what runs and what has ended: when somebody must know whether the sandbox is idle, and when
 * something was seen to end. What ended becomes events, each once, also over an eviction.
 */

import type { Life } from "../../../core/sandbox/record.ts";
import type { EventData } from "../../../protocol/event.ts";
import {
  type AgentEnding,
  type AgentWork,
  agentPaths,
  agentWorkSchema,
} from "../../../protocol/internal/agent.ts";
import { limits } from "../../../protocol/limits.ts";
import { AgentSilent, callAgent } from "../../../runtime/agent-client.ts";
import type { SandboxActor } from "../actor.ts";
import { tellUntil, toldUntil } from "./exit-events.ts";
import { wholeJson } from "./guarded-body.ts";
import { isCurrent } from "./handles.ts";

export class WorkLink {
  readonly #actor: SandboxActor;
  #looking: Promise<void> | undefined;
  #again = false;
  #isHeldBack = false;
  /** On their way to be told as begun: their ends are told after that. */
  readonly #beginning = new Map<string, number>();

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  /** For how long nothing has kept the sandbox busy; undefined where its container does not say so now. */
  async idleMs(): Promise<number | undefined> {
    const state = this.#actor.known?.sandbox.state;
    if (state?.name !== "running") return undefined;
    const { life } = state;
    const work = await this.#ask(life);
    if (!isCurrent(this.#actor, life)) return undefined;
    if (work === undefined || work === "unanswered") {
      // An agent of before there were processes: only what the object has in flight keeps it busy.
      return work === undefined ? Number.POSITIVE_INFINITY : undefined;
    }
    this.#tell(life, work.endings);
    return work.idleMs;
  }

  /** Nothing is told of its end before the answered function is called, once. */
  begins(id: string): () => void {
    this.#beginning.set(id, (this.#beginning.get(id) ?? 0) + 1);
    return () => {
      const others = (this.#beginning.get(id) ?? 1) - 1;
      if (others > 0) this.#beginning.set(id, others);
      else this.#beginning.delete(id);
      if (this.#isHeldBack) this.lookSoon();
    };
  }

  /** Something may have ended. Who asks while it is asked is answered by one more asking. */
  lookSoon(): void {
    this.#again = true;
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    this.#actor.host.background(this.#looking);
  }

  async #look(): Promise<void> {
    while (this.#again) {
      this.#again = false;
      await this.idleMs();
    }
  }

  #tell(life: Life, endings: readonly AgentEnding[]): void {
    const { host } = this.#actor;
    const { incarnation } = life;
    const told = toldUntil(host, incarnation);
    const untold = endings.filter(({ n }) => n > told);
    const held = untold.findIndex(({ id }) => this.#beginning.has(id));
    this.#isHeldBack = held >= 0;
    const fresh = held < 0 ? untold : untold.slice(0, held);
    const last = fresh.at(-1);
    if (last === undefined) return;
    tellUntil(host, incarnation, last.n);
    const events = fresh.map(
      ({ kind, ...ending }): EventData => ({
        type: kind,
        what: "ended",
        ...ending,
        incarnation,
      }),
    );
    this.#actor.commit({}, events, "something ended");
  }

  async #ask(life: Life): Promise<AgentWork | "unanswered" | undefined> {
    const { host, reach, link } = this.#actor;
    const path = `${agentPaths.work}?after=${toldUntil(host, life.incarnation)}`;
    try {
      const call = { method: "GET", path, requestId: "work" } as const;
      const response = await callAgent(reach, life, call, limits.aliveMs);
      const told = await wholeJson(response, reach.timer);
      const work = agentWorkSchema.safeParse(told);
      if (response.ok && work.success) return work.data;
      // An answer that broke off says nothing: what runs is not ended because of it.
      if (told !== undefined) return undefined;
      await link.confirm(life);
      return "unanswered";
    } catch (error) {
      if (!(error instanceof AgentSilent)) throw error;
      await link.confirm(life);
      return "unanswered";
    }
  }
}
