/**
 * Owns what the id of a process, a session or a terminal may still mean. One of another life is refused before
 * anybody is asked, and where no container runs there is nothing to be named: neither wakes one.
 */
import type { Life } from "../../../core/sandbox/record.ts";
import { BerthError } from "../../../protocol/errors.ts";
import { type HandleKind, isOfAnotherLife } from "../../../protocol/fields/handle.ts";
import type { SandboxActor } from "../actor.ts";
import { refuseWhenOver } from "../lifecycle/lifecycle.ts";

export type Handle = { kind: HandleKind; id: string };

/** Of something that is there already. A container that is coming up may have it by then. */
export function refuseUnknown(actor: SandboxActor, handle: Handle): void {
  refuseStale(actor, handle);
  const { name } = actor.facts.sandbox.state;
  if (name !== "running" && name !== "starting") throw unknown(handle);
}

/** Also of something that is to be made under this id. */
export function refuseStale(actor: SandboxActor, { kind, id }: Handle): void {
  refuseWhenOver(actor);
  if (!isOfAnotherLife(id, runningLife(actor)?.incarnation)) return;
  throw new BerthError("stale_handle", `The ${kind} ${id} was of an earlier life.`, {
    hint: "It ended when its container did; files are kept.",
    facts: { id },
  });
}

/** The life in which it is looked for, without waking one. */
export function lifeOf(actor: SandboxActor, handle: Handle): Life {
  refuseStale(actor, handle);
  const life = runningLife(actor);
  if (life === undefined) throw unknown(handle);
  return life;
}

export function runningLife(actor: SandboxActor): Life | undefined {
  const { state } = actor.facts.sandbox;
  return state.name === "running" ? state.life : undefined;
}

/** Whether that life still runs, as far as it is known here. */
export function isCurrent({ known }: SandboxActor, life: Life): boolean {
  const state = known?.sandbox.state;
  return state?.name === "running" && state.life.incarnation === life.incarnation;
}

function unknown({ kind, id }: Handle): BerthError {
  return new BerthError("not_found", `There is no ${kind} ${id}.`, {
    hint: "No container runs, so nothing runs in it.",
    facts: { id },
  });
}
