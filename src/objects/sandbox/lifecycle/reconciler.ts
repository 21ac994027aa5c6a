/** Starts the effect that the state requires: after each commit, when an instance wakes up, and on the alarm. */
import { type Effect, pendingEffect } from "../../../core/sandbox/pending.ts";
import { BackgroundTasks } from "../../shared/background.ts";
import type { SandboxActor } from "../actor.ts";
import { removeLeftovers } from "./checkpoint-removal.ts";
import { performEffect } from "./effects.ts";

export class Reconciler {
  readonly #actor: SandboxActor;
  /** Effects in progress, by what they do. */
  readonly #effects: BackgroundTasks;
  #isResumed = false;

  constructor(actor: SandboxActor) {
    this.#actor = actor;
    this.#effects = new BackgroundTasks(actor.host);
  }

  /** Called before each call: a fresh instance recovers what an earlier one left unfinished. */
  resume(): void {
    const actor = this.#actor;
    if (this.#isResumed || actor.existing === undefined) return;
    this.#isResumed = true;
    noticeServerEnd(actor);
    actor.keepAlive.renew();
    actor.listener?.recoverSockets();
    removeLeftovers(actor);
    actor.participant.recover();
    this.reconcile();
    actor.outbox.flush();
    // Calls of an earlier instance kept a lease alive without a deadline; they are gone.
    // And an alarm that was set before the wall clock stepped back would ring late by that step.
    if (actor.facts.lease.state.name !== "free" || actor.host.isClockAhead()) actor.armAlarm();
  }

  reconcile(): void {
    const actor = this.#actor;
    if (actor.existing === undefined) return;
    const { sandbox, lease } = actor.existing;
    const effect = pendingEffect(sandbox, actor.now());
    if (effect !== undefined) {
      void this.#effects.start(keyOf(effect), () => performEffect(effect, actor));
    }
    if (lease.state.name === "draining") {
      const { fence } = lease.state;
      void this.#effects.start(`drain ${fence}`, () => actor.link.drain(fence));
    }
    if (actor.automaticCheckpoints.isDue()) {
      void this.#effects.start("automatic checkpoint", () => actor.automaticCheckpoints.save());
    }
    if (actor.existing.revoking !== null) {
      void this.#effects.start("revoke", () => actor.revocation.sendToAgent());
    }
  }

  runningStarts(): Promise<void>[] {
    return this.#effects.withPrefix("start ");
  }

  /** Ends what is past its time, then reconciles. */
  async onAlarm(): Promise<void> {
    const actor = this.#actor;
    if (actor.existing === undefined) return;
    const { spec, state } = actor.existing.sandbox;
    actor.host.log({ sandbox: spec.id, state: state.name, why: "alarm" });
    this.resume();
    if (!actor.freeze.isActive) await actor.link.ensureGreeted();
    const busy = await actor.idleness.isBusy();
    if (actor.existing === undefined) return;
    const frozen = actor.freeze.isActive;
    actor.stepSandbox({ type: "deadline", busy, save: !actor.container.keepsFiles, frozen });
    actor.stepLease({ type: "tick" });
    actor.armAlarm();
    this.reconcile();
    actor.outbox.flush();
    // Expiry does not wait for this probe.
    actor.link.probeInBackground();
    await this.#effects.settle();
  }
}

/** The container of an earlier run of the server is gone for sure: nobody has to ask it. */
function noticeServerEnd(actor: SandboxActor): void {
  const { runningAgent: agent, host } = actor;
  if (agent?.serverRun === undefined || agent.serverRun === host.serverRun) return;
  actor.stepSandbox({ type: "server_ended", incarnation: agent.incarnation });
}

/** An effect on another incarnation is another effect, however long the first one takes. */
function keyOf(effect: Effect): string {
  if (effect.type === "start") return `start ${effect.start.startId}`;
  return "incarnation" in effect ? `${effect.type} ${effect.incarnation}` : effect.type;
}
