/**
 * Refuses a call on a sandbox that is destroyed or is being destroyed.
 */
import { destroyedError } from "../../../core/sandbox/admit.ts";
import { isEnding } from "../../../core/sandbox/step.ts";
import type { SandboxActor } from "../actor.ts";

export function refuseIfDestroyed(actor: SandboxActor): void {
  const { state } = actor.facts.sandbox;
  if (isEnding(state) && "reason" in state) throw destroyedError(state.reason);
}
