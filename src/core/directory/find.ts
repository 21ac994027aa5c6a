/** Decides find-or-create in one step, from the idempotency key of the call and the current sandbox of its scope. */
import { BerthError } from "../../protocol/errors.ts";
import type { OnExisting } from "../../protocol/fields/scope.ts";
import type { StateName } from "../../protocol/sandbox.ts";

/** What the Directory knows of a sandbox and the decision needs. */
export type KnownSandbox = {
  id: string;
  /** `creating`: decided and stored, but perhaps not yet created in its object. */
  phase: "creating" | "known";
  /** Destroyed or being destroyed. */
  isEnding: boolean;
  /** Not created yet, and meant to replace another sandbox, which may refuse to end. */
  isReplacing: boolean;
};

/** No scope leads to a sandbox in such a state. */
export function isEnding(state: StateName): boolean {
  return state === "destroying" || state === "destroyed";
}

export type IdempotentFind = { hash: string; sandbox: KnownSandbox | undefined };

export type FindDecision =
  /** A repeated call, or a sandbox that exists or is being created: wait for it. */
  | { join: KnownSandbox }
  /** The sandbox may have ended without a report: ask it, then decide again. */
  | { probe: string }
  | { make: true; replaces: string | undefined }
  | { refuse: BerthError };

export function decideFind(
  call: { hash: string; onExisting: OnExisting },
  sameKey: IdempotentFind | undefined,
  current: KnownSandbox | undefined,
  /** The sandbox that has just confirmed that it exists. */
  confirmed: string | undefined,
): FindDecision {
  if (sameKey !== undefined) {
    if (sameKey.hash !== call.hash) return { refuse: mismatchError() };
    if (sameKey.sandbox !== undefined) return { join: sameKey.sandbox };
  }
  if (current === undefined || current.isEnding) return { make: true, replaces: undefined };
  const { id, phase } = current;
  if (call.onExisting === "replace") {
    // A sandbox that is being created is new enough for a call that wants a new one.
    return phase === "creating" ? { join: current } : { make: true, replaces: id };
  }
  if (phase === "known" && confirmed !== id) return { probe: id };
  return call.onExisting === "error" ? { refuse: scopeTakenError(id) } : { join: current };
}

/**
 * Whether a caller decides again when the replacement that it waited for is not created: a caller that accepts the present
 * sandbox finds that one, and a caller with the right to end it may succeed where the other one could not.
 */
export function mayDecideAgain(
  call: { onExisting: OnExisting; mayEnd: boolean },
  joined: KnownSandbox,
): boolean {
  return joined.isReplacing && (call.onExisting !== "replace" || call.mayEnd);
}

function mismatchError(): BerthError {
  return new BerthError(
    "idempotency_mismatch",
    "The idempotency key was used for a different call.",
    {
      hint: "Use a new key for a new call.",
    },
  );
}

function scopeTakenError(id: string): BerthError {
  return new BerthError("scope_taken", `The scope already has a sandbox: ${id}.`, {
    hint: "Use that sandbox, or pass `onExisting: replace`.",
    facts: { sandbox: id },
  });
}
