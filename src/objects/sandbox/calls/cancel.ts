/**
 * Cancels a call by the id that its caller chose. The end of a connection does not suffice: the platform shows it only
 * when it fails to write the response. Calls stay in memory, because a call does not survive its object.
 */
import type { Incarnation } from "../../../core/sandbox/record.ts";
import { BerthError } from "../../../protocol/errors.ts";
import type { CallCancelled } from "../../../protocol/exec.ts";
import { agentPaths } from "../../../protocol/internal/agent.ts";
import { limits } from "../../../protocol/limits.ts";
import type { SandboxActor } from "../actor.ts";

type Sent = { agent: Incarnation; execId: string };

export class CancellableCall {
  isCancelled = false;
  sent: Sent | undefined;
  readonly end: () => void;

  constructor(end: () => void) {
    this.end = end;
  }

  refuseCancelled(): void {
    if (!this.isCancelled) return;
    throw new BerthError("operation_interrupted", "The call was cancelled before it began.", {
      facts: { admitted: false, reason: "cancelled" },
    });
  }
}

export class CancellableCalls {
  readonly #actor: SandboxActor;
  readonly #calls = new Map<string, CancellableCall>();
  /** Cancelled before they arrived, with the time until which they are refused; oldest first. */
  readonly #early = new Map<string, number>();

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  /** A repeated call with an idempotency key takes the place of the lost one. */
  begin(callId: string): CancellableCall {
    const call = new CancellableCall(() => {
      if (this.#calls.get(callId) === call) this.#calls.delete(callId);
    });
    const until = this.#early.get(callId);
    call.isCancelled = until !== undefined && this.#actor.now() < until;
    call.refuseCancelled();
    this.#calls.set(callId, call);
    return call;
  }

  /** Resolves when the agent has sent the signal. */
  async cancel(callId: string): Promise<CallCancelled> {
    this.#actor.refuseIfDestroyed();
    const call = this.#calls.get(callId);
    if (call === undefined) {
      this.#remember(callId);
      return { known: false };
    }
    call.isCancelled = true;
    // One that waits for the lease leaves the queue now.
    this.#actor.waiters.wakeAllTurns();
    const { sent } = call;
    if (sent !== undefined) {
      const path = `${agentPaths.cancel}/${sent.execId}`;
      const request = { method: "POST", path, requestId: "cancel" } as const;
      const response = await this.#actor.agentClient.sendIfReachable(sent.agent, request);
      await response?.body?.cancel();
    }
    return { known: true };
  }

  #remember(callId: string): void {
    const now = this.#actor.now();
    this.#early.delete(callId);
    this.#early.set(callId, now + limits.cancelledCallMs);
    for (const [oldest, until] of this.#early) {
      if (this.#early.size <= limits.cancelledCallsMax && now < until) break;
      this.#early.delete(oldest);
    }
  }
}
