/**
 * Owns the decision of find-or-create: from what is known of the key and of the scope's current sandbox, in one step.
 * Does not own rows, nor asking a sandbox how it is.
 */
import { BerthError } from "../../protocol/errors.ts";
import type { OnExisting } from "../../protocol/fields/scope.ts";
import type { StateName } from "../../protocol/sandbox.ts";

/** What the Directory knows of one sandbox, as far as this decision goes. */
export type Known = {
  id: string;
  /** `creating`: decided and durable; its object may not have heard of it yet. */
  phase: "creating" | "known";
  /** Destroyed, or on its way there. */
  over: boolean;
  /** Not made yet, and to take the place of one that need not give way. */
  isReplacing: boolean;
};

/** Of such a state: no scope leads to it. */
export function isOver(state: StateName): boolean {
  return state === "destroying" || state === "destroyed";
}

export type Keyed = { hash: string; sandbox: Known | undefined };

export type Decision =
  /** The same call as before, or one whose sandbox is just being made: wait for that. */
  | { join: Known }
  /** It may have died unheard: ask it, then decide again. */
  | { ask: string }
  | { make: true; replaces: string | undefined }
  | { refuse: BerthError };

export function decide(
  call: { hash: string; onExisting: OnExisting },
  keyed: Keyed | undefined,
  current: Known | undefined,
  /** Just asked: it lives. */
  confirmed: string | undefined,
): Decision {
  if (keyed !== undefined) {
    if (keyed.hash !== call.hash) return { refuse: mismatch() };
    if (keyed.sandbox !== undefined) return { join: keyed.sandbox };
  }
  if (current === undefined || current.over) return { make: true, replaces: undefined };
  const { id, phase } = current;
  if (call.onExisting === "replace") {
    // Who asks for a new one while one is being made gets that.
    return phase === "creating" ? { join: current } : { make: true, replaces: id };
  }
  if (phase === "known" && confirmed !== id) return { ask: id };
  return call.onExisting === "error" ? { refuse: taken(id) } : { join: current };
}

/**
 * Whether a caller who joined one that is not made after all decides anew: who asked for what is there finds that, and
 * who may end it where the other caller could not does so.
 */
export function decidesAnew(
  call: { onExisting: OnExisting; mayEnd: boolean },
  joined: Known,
): boolean {
  return joined.isReplacing && (call.onExisting !== "replace" || call.mayEnd);
}

function mismatch(): BerthError {
  return new BerthError("idempotency_mismatch", "The key was used before, with another call.", {
    hint: "Use a new key for a new call.",
  });
}

function taken(id: string): BerthError {
  return new BerthError("scope_taken", `The scope has a sandbox already: ${id}.`, {
    hint: "Use it, or say onExisting: replace.",
    facts: { sandbox: id },
  });
}
