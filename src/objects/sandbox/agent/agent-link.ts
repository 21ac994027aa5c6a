/**
 * Owns what this instance of the object and the agent know of each other: the fence that locks out an earlier
 * instance, what that one left running, the drain of a lost lease.
 * Does not own calls of users (gated.ts), nor the copy of the metadata (metadata-copy.ts).
 */

import type { Life } from "../../../core/sandbox/record.ts";
import {
  type AgentFenced,
  agentFencedSchema,
  agentPaths,
} from "../../../protocol/internal/agent.ts";
import { limits } from "../../../protocol/limits.ts";
import type { FailReason } from "../../../protocol/sandbox.ts";
import { AgentSilent, callAgent, isSpoken } from "../../../runtime/agent-client.ts";
import { inTime, pause } from "../../shared/timeout.ts";
import type { SandboxActor } from "../actor.ts";
import { whyLost } from "../lifecycle/loss-reason.ts";
import { wholeJson } from "./guarded-body.ts";
import { isCurrent } from "./handles.ts";

const pauseMs = 250;

export class AgentLink {
  readonly #actor: SandboxActor;
  /** The life that has answered this very instance of the object. */
  #greeted: string | undefined;
  #greeting: Promise<void> | undefined;
  #looking: Promise<void> | undefined;
  /** When that life last answered here, of what this file asks it. */
  #heardAt = 0;
  /** The fence of the newest count of what runs below it without anybody here waiting for it. */
  #counted = 0;
  #counting: Promise<unknown> = Promise.resolve();

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  /** Asked of a life before it is told of. One that is silent is found out by who comes next. */
  async speaks(life: Life): Promise<boolean> {
    try {
      const call = { method: "GET", path: agentPaths.health, requestId: "start" } as const;
      const response = await callAgent(this.#actor.patientReach, life, call, limits.aliveMs);
      await response.body?.cancel();
      return isSpoken(response);
    } catch (error) {
      if (error instanceof AgentSilent) return true;
      throw error;
    }
  }

  /** It was started by this instance, so no earlier one can have sent it anything. */
  started(life: Life): void {
    this.#greeted = life.incarnation;
    this.#heardAt = this.#actor.host.clock();
    this.#actor.inFlight.inherit(0);
    this.#actor.metadataCopy.update();
  }

  /** The first word of this instance to a running agent. Callers at the same time share it. */
  async known(): Promise<void> {
    const state = this.#actor.known?.sandbox.state;
    if (state?.name !== "running" || state.life.incarnation === this.#greeted) return;
    this.#greeting ??= this.#greet(state.life).finally(() => {
      this.#greeting = undefined;
    });
    await this.#greeting;
  }

  /**
   * Before a call that goes to the agent: one that was not heard of for a while is looked at too. It may have died unheard,
   * and a call that finds that out by itself cannot know what it did. What the object decides alone does not wait for that.
   */
  async alive(): Promise<void> {
    await this.known();
    await this.#looked();
  }

  /**
   * For who only asks how it is: no first word, which is written down, and no longer than that beside an agent that hangs.
   * The look goes on without him.
   */
  async seen(waitMs: number): Promise<void> {
    const { host } = this.#actor;
    const looked = this.#looked().catch(() => undefined);
    host.background(looked);
    await inTime(host, looked, waitMs).catch(() => undefined);
  }

  /** The same look, for which nobody waits. What stands in its way is over by one of the next. */
  lookBeside(): void {
    this.#actor.host.background(this.alive().catch(() => undefined));
  }

  /** After a call that failed: does that life still answer? What it has left of the call counts until it is gone. */
  async confirm(life: Life): Promise<void> {
    if (!isCurrent(this.#actor, life)) return;
    this.#actor.lease({ type: "instance" });
    await this.#actor.host.durable();
    await this.#count(life);
  }

  /** A caller went away: its command is being ended, and counts until the agent confirms that. */
  abandoned(life: Life): void {
    if (!isCurrent(this.#actor, life)) return;
    this.#actor.inFlight.inherit(this.#actor.inFlight.inherited + 1);
    this.#actor.host.background(this.confirm(life));
  }

  /** Until nothing below the fence is left, or the container is gone. Never rejects. */
  async drain(fence: number): Promise<void> {
    const { host } = this.#actor;
    for (;;) {
      const lease = this.#actor.known?.lease;
      if (lease?.state.name !== "draining" || lease.state.fence !== fence) return;
      await host.durable();
      if (await this.#drained(lease.fence, lease.state.replace)) {
        this.#actor.inFlight.inherit(0);
        if (this.#actor.known !== undefined) this.#actor.lease({ type: "drained", fence });
        return;
      }
      await pause(host, pauseMs);
    }
  }

  /** Callers at the same time share it. One that was heard of just now is not asked. */
  async #looked(): Promise<void> {
    const state = this.#actor.known?.sandbox.state;
    if (state?.name !== "running" || !this.#isQuiet()) return;
    this.#looking ??= this.#look(state.life).finally(() => {
      this.#looking = undefined;
    });
    await this.#looking;
  }

  /** While files are being saved silence means nothing. */
  #isQuiet(): boolean {
    const { host, stillness } = this.#actor;
    return !stillness.isHeld && host.clock() - this.#heardAt >= limits.agentQuietMs;
  }

  async #look(life: Life): Promise<void> {
    try {
      const call = { method: "GET", path: agentPaths.health, requestId: "alive" } as const;
      const response = await callAgent(this.#actor.patientReach, life, call);
      await response.body?.cancel();
      this.#heardAt = this.#actor.host.clock();
    } catch (error) {
      if (!(error instanceof AgentSilent)) throw error;
      await this.confirm(life);
    }
  }

  async #greet(life: Life): Promise<void> {
    this.#actor.lease({ type: "instance" });
    await this.#actor.host.durable();
    if (!(await this.#count(life))) return;
    this.#greeted = life.incarnation;
    this.#actor.metadataCopy.update();
  }

  /** Counts run one after the other: the newest, which has the highest fence, is right about all before it. */
  #count(life: Life): Promise<boolean> {
    const count = this.#counting.then(() => this.#countNow(life));
    this.#counting = count.catch(() => undefined);
    return count;
  }

  /** From here on nothing below the present fence begins; what has begun counts until it is gone. */
  async #countNow(life: Life): Promise<boolean> {
    if (!isCurrent(this.#actor, life)) return false;
    const { fence } = this.#actor.facts.lease;
    this.#counted = fence;
    const fenced = await this.#fence(life, { fence, drain: false, waitMs: 0 }, limits.aliveMs);
    if (!isCurrent(this.#actor, life)) return false;
    if (fenced === undefined || !fenced.isSpoken) {
      // Until it is told of as lost, who comes next looks again, and waits for that.
      this.#heardAt = 0;
      await this.#lost(life, fenced === undefined ? undefined : "agent_unsupported");
      return false;
    }
    this.#heardAt = this.#actor.host.clock();
    this.#actor.inFlight.inherit(fenced.left);
    this.#actor.flightChanged();
    if (fenced.left > 0) this.#actor.host.background(this.#outlive(life, fence));
    return true;
  }

  /** It ends by itself; who counts anew takes over. */
  async #outlive(life: Life, fence: number): Promise<void> {
    while (this.#actor.inFlight.inherited > 0) {
      const asked = { fence, drain: false, waitMs: limits.agentHeadersMs / 3 };
      const fenced = await this.#fence(life, asked, limits.agentHeadersMs);
      if (!isCurrent(this.#actor, life) || this.#counted !== fence) return;
      if (fenced === undefined) return this.#lost(life);
      this.#actor.inFlight.inherit(fenced.left);
      this.#actor.flightChanged();
    }
  }

  async #drained(fence: number, replace: boolean): Promise<boolean> {
    const state = this.#actor.known?.sandbox.state;
    if (state?.name !== "running") return state?.name !== "pausing" && state?.name !== "starting";
    const { life } = state;
    if (replace) {
      try {
        await this.#actor.container.destroy("keep");
      } catch {
        return false;
      }
      await this.#lost(life);
      return true;
    }
    const asked = { fence, drain: true, waitMs: limits.agentHeadersMs / 3 };
    const fenced = await this.#fence(life, asked, limits.agentHeadersMs);
    return fenced?.left === 0;
  }

  async #lost(life: Life, known?: FailReason): Promise<void> {
    const reason = known ?? (await whyLost(this.#actor, life));
    if (!isCurrent(this.#actor, life)) return;
    this.#actor.sandbox({ type: "lost", incarnation: life.incarnation, reason });
    this.#actor.inFlight.inherit(0);
    this.#actor.flightChanged();
  }

  async #fence(
    life: Life,
    call: { fence: number; drain: boolean; waitMs: number },
    headersMs: number,
  ): Promise<(AgentFenced & { isSpoken: boolean }) | undefined> {
    try {
      const response = await callAgent(
        this.#actor.patientReach,
        life,
        { method: "POST", path: agentPaths.fence, body: JSON.stringify(call), requestId: "fence" },
        headersMs,
      );
      const fenced = agentFencedSchema.safeParse(
        await wholeJson(response, this.#actor.reach.timer),
      );
      if (!response.ok || !fenced.success) return undefined;
      return { ...fenced.data, isSpoken: isSpoken(response) };
    } catch (error) {
      if (error instanceof AgentSilent) return undefined;
      throw error;
    }
  }
}
