/**
 * Owns whether something keeps a sandbox from being idle, and when it was last used, as far as it is known here; at the
 * idle deadline, and only then, the agent is asked too. Does not own what an idle sandbox comes to (core/sandbox).
 */
import type { SandboxActor } from "../actor.ts";

export class Idleness {
  readonly #actor: SandboxActor;
  /** The newest work that memory knows of; a row is written only now and then. */
  #activeAt = 0;

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  /** Work was done. Written down at most ten times within the idle time-out. */
  active(): void {
    this.#activeAt = this.#actor.now();
    const { spec, state } = this.#actor.facts.sandbox;
    if (state.name !== "running") return;
    if (this.#activeAt - state.activeAt >= spec.idleTimeoutMs / 10) this.#note();
  }

  /** What memory knows of work, and what the agent says of its last, is noted: the deadline counts from there. */
  async keepsBusy(): Promise<boolean> {
    if (this.#actor.known === undefined) return false;
    this.#note();
    const busy = await this.#look();
    if (this.#actor.known !== undefined) this.#note();
    return busy;
  }

  async #look(): Promise<boolean> {
    const actor = this.#actor;
    if (isOccupied(actor)) return true;
    if (!isDue(actor)) return false;
    const idleMs = await actor.work.idleMs();
    if (actor.known === undefined) return false;
    if (idleMs === undefined || idleMs === 0 || isOccupied(actor)) return true;
    if (Number.isFinite(idleMs)) actor.sandbox({ type: "active", at: actor.now() - idleMs });
    return false;
  }

  #note(): void {
    if (this.#activeAt > 0) this.#actor.sandbox({ type: "active", at: this.#activeAt });
  }
}

function isOccupied(actor: SandboxActor): boolean {
  const { lease } = actor.facts;
  const held = actor.stillness.isHeld || actor.inFlight.size > 0;
  return held || lease.state.name !== "free" || wouldLoseFiles(actor);
}

function isDue(actor: SandboxActor): boolean {
  const { spec, state } = actor.facts.sandbox;
  if (state.name !== "running" || spec.onIdle === "none") return false;
  return actor.now() >= state.activeAt + spec.idleTimeoutMs;
}

/** Where files do not outlive the container, idle is no reason to take it away. */
function wouldLoseFiles(actor: SandboxActor): boolean {
  const { spec, state } = actor.facts.sandbox;
  const { keepsFiles, savesFiles } = actor.container;
  return state.name === "running" && spec.onIdle === "pause" && !keepsFiles && !savesFiles;
}
