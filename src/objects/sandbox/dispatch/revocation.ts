/**
 * Owns that what tokens opened ends when they are revoked: here, and in the container the sockets of terminals, whose
 * agent is told until it has heard it. What a key opened is not even counted.
 * Does not own how a stream ends (revocable.ts), nor the sockets of leases (lease-socket.ts).
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
  /** What goes on here because a token asked for it: each what ends it. */
  readonly #open = new Set<() => void>();

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  /** Who has no generation has no token, and goes on. */
  refuse(generation: number | undefined): void {
    const known = this.#actor.existing;
    if (generation === undefined || known === undefined) return;
    if (generation !== known.tokenGeneration) throw revoked();
  }

  /** Called once, when the generation is revoked; where it is already, at once. The answered function takes it back. */
  ends(generation: number, end: () => void): () => void {
    this.#open.add(end);
    if (this.#actor.existing?.tokenGeneration !== generation) end();
    return () => this.#open.delete(end);
  }

  /** After the commit. */
  began(): void {
    for (const end of [...this.#open]) end();
    this.#open.clear();
    this.#actor.listener?.tokensRevoked();
  }

  /** Should this instance not live to tell it. */
  deadline(): Deadline | undefined {
    const { revoking } = this.#actor.facts;
    if (revoking === null) return undefined;
    return { at: this.#actor.host.clock() + limits.revokeAgainMs, why: "sockets of tokens close" };
  }

  /** Until the agent has heard it, or its life is over: then it has no sockets. Never rejects. */
  async tell(): Promise<void> {
    const { host } = this.#actor;
    let pauseMs = firstPauseMs;
    for (;;) {
      const { existing: known } = this.#actor;
      if (known === undefined || known.revoking === null) return;
      const life = lifeIn(known.sandbox.state);
      const generation = known.tokenGeneration;
      if (life?.incarnation !== known.revoking || (await this.#isTold(life, generation))) {
        this.#told(known.revoking, generation);
        continue;
      }
      await this.#actor.link.recheck(life);
      await sleep(host, pauseMs);
      pauseMs = Math.min(pauseMs * 2, pauseMaxMs);
    }
  }

  /** Of the newest only: what was revoked meanwhile is told next. */
  #told(incarnation: string, generation: number): void {
    const { existing: known } = this.#actor;
    if (known?.revoking !== incarnation || known.tokenGeneration !== generation) return;
    this.#actor.commit({ revoking: null }, [], "sockets of tokens are closed");
  }

  async #isTold(life: Incarnation, generation: number): Promise<boolean> {
    await this.#actor.host.flush();
    const body = JSON.stringify({ generation });
    const call = { method: "POST", path: agentPaths.revoked, body, requestId: "revoked" } as const;
    try {
      const response = await this.#actor.agentClient.sendInternal(life, call);
      await response.body?.cancel();
      // One that does not know the call was given no sockets of tokens (terminals.ts).
      return response.ok || response.status === errors.not_found.status;
    } catch (error) {
      if (error instanceof AgentUnreachable || error instanceof BerthError) return false;
      throw error;
    }
  }
}

/** Whose agent is to be told. */
export function lifeIn(state: SandboxState): Incarnation | undefined {
  return "life" in state ? state.life : undefined;
}

export function revoked(): BerthError {
  return new BerthError("unauthenticated", "The token was revoked.");
}
