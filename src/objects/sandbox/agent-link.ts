/**
 * Owns what this instance of the object and the agent know of each other: the fence that locks out an earlier
 * instance, what that one left running, the drain of a lost lease, the copy of the metadata.
 * Does not own calls of users (gated.ts).
 */
import { AgentSilent, callAgent } from "../../container/agent-client.ts";
import type { Life } from "../../core/sandbox/record.ts";
import { type AgentFenced, agentFencedSchema, agentPaths } from "../../protocol/agent.ts";
import { limits } from "../../protocol/limits.ts";
import type { SandboxActor } from "./actor.ts";

const pauseMs = 250;

export class AgentLink {
  readonly #actor: SandboxActor;
  /** The life that has answered this very instance of the object. */
  #greeted: string | undefined;
  #greeting: Promise<void> | undefined;
  #copied: { incarnation: string; version: number } | undefined;
  #copying: Promise<void> | undefined;

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  /** It was started by this instance, so no earlier one can have sent it anything. */
  started(life: Life): void {
    this.#greeted = life.incarnation;
    this.#actor.inFlight.inherit(0);
    this.copyMetadata();
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

  /** After a call that failed: does that life still answer? */
  async confirm(life: Life): Promise<void> {
    const fence = this.#actor.facts.lease.fence;
    if (
      (await this.#fence(life, { fence, drain: false, waitMs: 0 }, limits.aliveMs)) !== undefined
    ) {
      return;
    }
    this.lost(life);
  }

  lost(life: Life): void {
    this.#actor.sandbox({
      type: "lost",
      incarnation: life.incarnation,
      reason: "container_lost",
    });
    this.#actor.inFlight.inherit(0);
    this.#actor.flightChanged();
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
      await new Promise<void>((resolve) => host.timer(pauseMs, resolve));
    }
  }

  /** Brings the copy inside the sandbox up to date; a newer change while it runs is taken along. */
  copyMetadata(): void {
    this.#copying ??= this.#copy().finally(() => {
      this.#copying = undefined;
    });
    this.#actor.host.background(this.#copying);
  }

  async #greet(life: Life): Promise<void> {
    this.#actor.lease({ type: "instance" });
    await this.#actor.host.durable();
    const { fence } = this.#actor.facts.lease;
    const fenced = await this.#fence(life, { fence, drain: false, waitMs: 0 }, limits.aliveMs);
    if (fenced === undefined) {
      this.lost(life);
      return;
    }
    this.#greeted = life.incarnation;
    this.#actor.inFlight.inherit(fenced.left);
    if (fenced.left > 0) this.#actor.host.background(this.#outlive(life, fence));
    this.copyMetadata();
  }

  /** What an earlier instance left running ends by itself; until then it counts. */
  async #outlive(life: Life, fence: number): Promise<void> {
    while (this.#isCurrent(life) && this.#actor.inFlight.inherited > 0) {
      const asked = { fence, drain: false, waitMs: limits.agentHeadersMs / 3 };
      const fenced = await this.#fence(life, asked, limits.agentHeadersMs);
      if (!this.#isCurrent(life)) return;
      if (fenced === undefined) {
        this.lost(life);
        return;
      }
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
      this.lost(life);
      return true;
    }
    const asked = { fence, drain: true, waitMs: limits.agentHeadersMs / 3 };
    const fenced = await this.#fence(life, asked, limits.agentHeadersMs);
    return fenced?.left === 0;
  }

  async #copy(): Promise<void> {
    for (;;) {
      const facts = this.#actor.known;
      if (facts?.sandbox.state.name !== "running") return;
      const { life } = facts.sandbox.state;
      const { map, version } = facts.metadata;
      const { incarnation } = life;
      if (this.#copied?.incarnation === incarnation && this.#copied.version >= version) return;
      await this.#actor.host.durable();
      try {
        const response = await callAgent(this.#actor.reach, life, {
          method: "PUT",
          path: agentPaths.metadata,
          body: JSON.stringify({ version, metadata: map }),
          requestId: "metadata",
        });
        await response.body?.cancel();
        if (!response.ok) return;
      } catch {
        // The next change or the next greeting tries again; the truth is here, not there.
        return;
      }
      this.#copied = { incarnation, version };
    }
  }

  async #fence(
    life: Life,
    call: { fence: number; drain: boolean; waitMs: number },
    headersMs: number,
  ): Promise<AgentFenced | undefined> {
    try {
      const response = await callAgent(
        this.#actor.reach,
        life,
        { method: "POST", path: agentPaths.fence, body: JSON.stringify(call), requestId: "fence" },
        headersMs,
      );
      const fenced = agentFencedSchema.safeParse(await response.json());
      return response.ok && fenced.success ? fenced.data : undefined;
    } catch (error) {
      if (error instanceof AgentSilent || error instanceof SyntaxError) return undefined;
      throw error;
    }
  }

  #isCurrent(life: Life): boolean {
    const state = this.#actor.known?.sandbox.state;
    return state?.name === "running" && state.life.incarnation === life.incarnation;
  }
}
