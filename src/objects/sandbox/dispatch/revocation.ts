/**
 * Ends what tokens opened when they are revoked: streams and sockets here, and terminal sockets in the container,
 * whose agent gets the revocation until it confirms it. What keys opened is not tracked.
 */
import type { Deadline } from "../../../core/deadline.ts";
import type { Incarnation, SandboxState } from "../../../core/sandbox/record.ts";
import { BerthError, errors } from "../../../protocol/errors.ts";
import { agentPaths } from "../../../protocol/internal/agent.ts";
import { limits } from "../../../protocol/limits.ts";
import { AgentUnreachable } from "../../../runtime/agent-client.ts";
import { sleep } from "../../shared/timeout.ts";
import type { SandboxActor } from "../actor.ts";

const firstPauseMs = 250;
const pauseMaxMs = 4_000;

export class Revocation {
  readonly #actor: SandboxActor;
  /** What tokens have open in this object, each by the function that ends it. */
  readonly #open = new Set<() => void>();

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  /** A caller without a generation has no token, and passes. */
  refuse(generation: number | undefined): void {
    const existing = this.#actor.existing;
    if (generation === undefined || existing === undefined) return;
    if (generation !== existing.tokenGeneration) throw revokedError();
  }

  /** Calls `end` once: when the generation is revoked, or now. The returned function unregisters it. */
  ends(generation: number, end: () => void): () => void {
    this.#open.add(end);
    if (this.#actor.existing?.tokenGeneration !== generation) end();
    return () => this.#open.delete(end);
  }

  /** Call after the commit. */
  onRevoked(): void {
    for (const end of [...this.#open]) end();
    this.#open.clear();
    this.#actor.listener?.tokensRevoked();
  }

  /** When to send it again, should this instance not live to do so. */
  deadline(): Deadline | undefined {
    const { revoking } = this.#actor.facts;
    if (revoking === null) return undefined;
    return { at: this.#actor.host.clock() + limits.revokeRetryMs, why: "revocation retry" };
  }

  /** Repeats until the agent confirms or its incarnation has ended, which closes its sockets. Never rejects. */
  async sendToAgent(): Promise<void> {
    const { host } = this.#actor;
    let pauseMs = firstPauseMs;
    for (;;) {
      const { existing } = this.#actor;
      if (existing === undefined || existing.revoking === null) return;
      const agent = incarnationIn(existing.sandbox.state);
      const generation = existing.tokenGeneration;
      const hasEnded = agent?.incarnation !== existing.revoking;
      if (hasEnded || (await this.#isConfirmed(agent, generation))) {
        this.#recordConfirmed(existing.revoking, generation);
        continue;
      }
      await this.#actor.link.recheck(agent);
      await sleep(host, pauseMs);
      pauseMs = Math.min(pauseMs * 2, pauseMaxMs);
    }
  }

  /** Only for the newest revocation: a later one is sent next. */
  #recordConfirmed(incarnation: string, generation: number): void {
    const { existing } = this.#actor;
    if (existing?.revoking !== incarnation || existing.tokenGeneration !== generation) return;
    this.#actor.commit({ revoking: null }, [], "sockets of tokens are closed");
  }

  async #isConfirmed(agent: Incarnation, generation: number): Promise<boolean> {
    await this.#actor.host.flush();
    const body = JSON.stringify({ generation });
    const call = { method: "POST", path: agentPaths.revoked, body, requestId: "revoked" } as const;
    try {
      const response = await this.#actor.agentClient.sendInternal(agent, call);
      await response.body?.cancel();
      // An agent without the route got no sockets of tokens (terminals.ts).
      return response.ok || response.status === errors.not_found.status;
    } catch (error) {
      if (error instanceof AgentUnreachable || error instanceof BerthError) return false;
      throw error;
    }
  }
}

/** The incarnation whose agent must get the revocation. */
export function incarnationIn(state: SandboxState): Incarnation | undefined {
  return "life" in state ? state.life : undefined;
}

export function revokedError(): BerthError {
  return new BerthError("unauthenticated", "The token was revoked.");
}
