/**
 * Ends what tokens and keys opened when they are revoked: streams and sockets here, and terminal sockets in the container,
 * whose agent gets the revocation until it confirms it. A key of the Worker's variables cannot be revoked.
 */
import type { Deadline } from "../../../core/deadline.ts";
import type { Incarnation, SandboxState } from "../../../core/sandbox/record.ts";
import { BerthError, errors } from "../../../protocol/errors.ts";
import { type AgentRevoked, agentPaths } from "../../../protocol/internal/agent.ts";
import { limits } from "../../../protocol/limits.ts";
import { AgentUnreachable } from "../../../runtime/agent-client.ts";
import { sleep } from "../../shared/timeout.ts";
import type { SandboxActor } from "../actor.ts";
import type { Opener } from "./opener.ts";

const firstPauseMs = 250;
const pauseMaxMs = 4_000;

export class Revocation {
  readonly #actor: SandboxActor;
  /** What tokens have open in this object, each by the function that ends it. */
  readonly #open = new Map<() => void, Opener>();
  /** Removed keys. Their tenants call again after a restart, until no Worker can admit one. */
  readonly #endedKeys = new Set<string>();

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  refuse(opener: Opener): void {
    if (this.#actor.existing !== undefined && this.isEnded(opener)) throw revokedError();
  }

  isEnded({ generation, keyId }: Opener): boolean {
    if (keyId !== undefined && this.#endedKeys.has(keyId)) return true;
    return generation !== undefined && generation !== this.#actor.existing?.tokenGeneration;
  }

  /** Calls `end` once: when the token or key is revoked, or now. The returned function unregisters it. */
  ends(opener: Opener, end: () => void): () => void {
    this.#open.set(end, opener);
    if (this.isEnded(opener)) end();
    return () => this.#open.delete(end);
  }

  /** Call after the commit. */
  onRevoked(): void {
    for (const [end, opener] of [...this.#open]) {
      if (!this.isEnded(opener)) continue;
      this.#open.delete(end);
      end();
    }
    this.#actor.listener?.tokensRevoked();
  }

  /** Ends what the key and its tokens opened. Fails if the agent does not confirm it: then it is to be called again. */
  async endKey(keyId: string): Promise<void> {
    const { host, waiters } = this.#actor;
    this.#endedKeys.add(keyId);
    host.sql("DELETE FROM connect_ticket WHERE of_key = ?", keyId);
    this.onRevoked();
    waiters.wakeAll();
    waiters.wakeAllTurns();
    const agent = incarnationIn(this.#actor.facts.sandbox.state);
    if (agent === undefined || (await this.#isConfirmed(agent, { keyId }))) return;
    await this.#actor.link.recheck(agent);
    if (this.#actor.isCurrent(agent))
      throw new BerthError("unavailable", "The agent did not confirm the end of the key.");
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
      if (hasEnded || (await this.#isConfirmed(agent, { generation }))) {
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

  async #isConfirmed(agent: Incarnation, revoked: Opener): Promise<boolean> {
    await this.#actor.host.flush();
    const { generation = this.#actor.facts.tokenGeneration, keyId } = revoked;
    const body = JSON.stringify({ generation, keyId } satisfies AgentRevoked);
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
  return new BerthError("unauthenticated", "The key or token was revoked.");
}
