/**
 * Owns whether something keeps a sandbox from being idle, as far as it is known here; at the idle deadline, and only
 * then, the agent is asked too.
 */
import type { SandboxActor } from "./actor.ts";

/** What the agent says of its last work is noted first: the deadline counts from there. */
export async function keepsBusy(actor: SandboxActor): Promise<boolean> {
  if (isOccupied(actor)) return true;
  if (!isDue(actor)) return false;
  const idleMs = await actor.work.idleMs();
  if (actor.known === undefined) return false;
  if (idleMs === undefined || idleMs === 0 || isOccupied(actor)) return true;
  if (Number.isFinite(idleMs)) actor.sandbox({ type: "active", at: actor.now() - idleMs });
  return false;
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
