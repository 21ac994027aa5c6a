/**
 * Keeps the container of a sleeping object: the platform ends it soon after an object without an inactivity timeout
 * sleeps, and forgets the timeout with each instance of the object. So each instance renews it, and an alarm does where
 * nothing else wakes the object in time.
 */
import type { Deadline } from "../../../core/deadline.ts";
import { messageOf } from "../../shared/result.ts";
import type { SandboxActor } from "../actor.ts";

export class KeepAlive {
  readonly #actor: SandboxActor;
  #renewedAt: number | undefined;

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  /** Call in each instance before its first word to the agent, and in each alarm. A failure is tried again by the next. */
  renew(): void {
    const { host, existing } = this.#actor;
    if (existing === undefined || !this.#hasContainer) return;
    const { container } = this.#actor;
    if (container.renewEveryMs === undefined) return;
    this.#renewedAt = host.clock();
    const renewing = container.renew().catch((error: unknown) => {
      const { id } = existing.sandbox.spec;
      host.log({ sandbox: id, failed: "renew the inactivity timeout", message: messageOf(error) });
    });
    host.waitUntil(renewing);
  }

  deadline(): Deadline | undefined {
    if (this.#actor.existing?.sandbox.state.name !== "running") return undefined;
    const { renewEveryMs } = this.#actor.container;
    if (renewEveryMs === undefined) return undefined;
    // The start renewed it too.
    const { since } = this.#actor.existing.sandbox.state;
    const dueAt = Math.max(since, this.#renewedAt ?? 0) + renewEveryMs;
    return { at: dueAt, why: "inactivity timeout renewal" };
  }

  get #hasContainer(): boolean {
    const name = this.#actor.existing?.sandbox.state.name;
    return name === "running" || name === "pausing";
  }
}
