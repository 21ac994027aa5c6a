/**
 * Owns going on with a sandbox: what its state wants done is begun after each commit, on a fresh wake and when the alarm
 * rings, and what an earlier instance left half done is taken up. Does not own what is done (effects.ts).
 */
import { type Effect, pending } from "../../../core/sandbox/pending.ts";
import { UnderWay } from "../../shared/background.ts";
import type { SandboxActor } from "../actor.ts";
import { cleanUp } from "./checkpoint-removal.ts";
import { perform } from "./effects.ts";

export class Pursuit {
  readonly #actor: SandboxActor;
  /** Effects, by what they do. */
  readonly #underWay: UnderWay;
  #resumed = false;

  constructor(actor: SandboxActor) {
    this.#actor = actor;
    this.#underWay = new UnderWay(actor.host);
  }

  /** At each call: a fresh instance of the object takes up what an earlier one may have left undone. */
  resume(): void {
    if (this.#resumed) return;
    this.#resumed = true;
    this.#takeUp();
    this.pursue();
    this.#actor.listing.tell();
    // Calls of an earlier instance kept a lease alive without a deadline; they are gone.
    const lease = this.#actor.known?.lease;
    if (lease !== undefined && lease.state.name !== "free") this.#actor.rearm();
  }

  pursue(): void {
    const actor = this.#actor;
    if (actor.known === undefined) return;
    const { sandbox, lease } = actor.known;
    const effect = pending(sandbox, actor.now());
    if (effect !== undefined) {
      void this.#underWay.begin(keyOf(effect), () => perform(effect, actor));
    }
    if (lease.state.name === "draining") {
      const { fence } = lease.state;
      void this.#underWay.begin(`drain ${fence}`, () => actor.link.drain(fence));
    }
    if (actor.known.revoking !== null) {
      void this.#underWay.begin("revoke", () => actor.revocation.tell());
    }
  }

  startsUnderWay(): Promise<void>[] {
    return this.#underWay.of("start ");
  }

  /** What time has ended, ends; then it is gone on with. */
  async alarm(): Promise<void> {
    const actor = this.#actor;
    if (actor.known === undefined) return;
    const { spec, state } = actor.known.sandbox;
    actor.host.log({ sandbox: spec.id, state: state.name, why: "alarm" });
    if (!this.#resumed) this.#takeUp();
    this.#resumed = true;
    const asks = actor.facts.sandbox.state.name === "running" && !actor.stillness.isHeld;
    if (asks) await actor.link.known();
    const busy = await actor.idleness.keepsBusy();
    if (actor.known === undefined) return;
    actor.sandbox({ type: "deadline", busy, save: !actor.container.keepsFiles });
    actor.lease({ type: "tick" });
    actor.rearm();
    this.pursue();
    actor.listing.tell();
    // What time has ended does not wait for it.
    actor.link.lookBeside();
    await this.#underWay.settled();
  }

  #takeUp(): void {
    if (this.#actor.known === undefined) return;
    cleanUp(this.#actor);
    this.#actor.member.takeUp();
  }
}

/** What is done to another life is something else, however long the first takes. */
function keyOf(effect: Effect): string {
  if (effect.type === "start") return `start ${effect.start.startId}`;
  return "incarnation" in effect ? `${effect.type} ${effect.incarnation}` : effect.type;
}
