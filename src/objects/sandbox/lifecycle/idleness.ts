/** Whether a sandbox is busy and when it was last used. The agent is asked only at the idle deadline. */
import type { SandboxActor } from "../actor.ts";

export class Idleness {
  readonly #actor: SandboxActor;
  /** The newest use in memory; the row is written only now and then. */
  #activeAt = 0;

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  /** Records a use. Writes at most ten times within the idle timeout. */
  recordUse(): void {
    this.#activeAt = this.#actor.now();
    const { spec, state } = this.#actor.facts.sandbox;
    if (state.name !== "running") return;
    if (this.#activeAt - state.activeAt >= spec.idleTimeoutMs / 10) this.#record();
  }

  /** Records the last use that memory or the agent knows of: the idle deadline counts from there. */
  async isBusy(): Promise<boolean> {
    if (this.#actor.existing === undefined) return false;
    this.#record();
    const busy = await this.#checkBusy();
    if (this.#actor.existing !== undefined) this.#record();
    return busy;
  }

  async #checkBusy(): Promise<boolean> {
    const actor = this.#actor;
    if (isOccupied(actor)) return true;
    if (!isDue(actor)) return false;
    const idleMs = await actor.workMonitor.probeIdleMs();
    if (actor.existing === undefined) return false;
    if (idleMs === undefined || idleMs === 0 || isOccupied(actor)) return true;
    if (Number.isFinite(idleMs)) actor.stepSandbox({ type: "active", at: actor.now() - idleMs });
    return false;
  }

  #record(): void {
    if (this.#activeAt > 0) this.#actor.stepSandbox({ type: "active", at: this.#activeAt });
  }
}

function isOccupied(actor: SandboxActor): boolean {
  const { lease } = actor.facts;
  const isHeld = actor.freeze.isActive || actor.inFlight.size > 0;
  return isHeld || lease.state.name !== "free" || wouldLoseFiles(actor);
}

function isDue(actor: SandboxActor): boolean {
  const { spec, state } = actor.facts.sandbox;
  if (state.name !== "running" || spec.onIdle === "none") return false;
  return actor.now() >= state.activeAt + spec.idleTimeoutMs;
}

/** Where files do not outlive the container and cannot be saved, an idle sandbox is not paused. */
function wouldLoseFiles(actor: SandboxActor): boolean {
  const { spec, state } = actor.facts.sandbox;
  const { keepsFiles, savesFiles } = actor.container;
  return state.name === "running" && spec.onIdle === "pause" && !keepsFiles && !savesFiles;
}
