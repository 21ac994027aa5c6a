/**
 * Owns the calls that commit or roll back: known again by their key, begun or joined in one step, answered at the end
 * of the run or when they have waited long enough. Does not own the run itself, which goes on without them.
 */
import { planBusy } from "../../core/plan/membership.ts";
import { type Begin, begin } from "../../core/plan/run.ts";
import { commitView, refusalOf } from "../../core/plan/view.ts";
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { Commit } from "../../protocol/plan.ts";
import type { PlanActor } from "./actor.ts";
import { commitOf, keepKey, keyedRun, runOf } from "./history.ts";

export type RunCall = Begin & {
  key: string | undefined;
  /** Of the whole call but its patience. */
  hash: string;
};

export async function run(actor: PlanActor, call: RunCall): Promise<Commit> {
  const n = await begun(actor, call);
  await ended(actor, n, limits.planAnswerMs);
  const told = runOf(actor.place, n);
  if (told === null) throw forgotten();
  const refused = refusalOf(told);
  if (refused !== undefined) throw refused;
  return commitView(told);
}

/** Waits for its end, which may have been long ago. */
export async function look(actor: PlanActor, n: number, waitMs: number): Promise<Commit> {
  await ended(actor, n, waitMs);
  const told = commitOf(actor.place, n);
  if (told === undefined) throw new BerthError("not_found", `The plan has no commit ${n}.`);
  return told;
}

async function begun(actor: PlanActor, call: RunCall): Promise<number> {
  const end = actor.place.clock() + call.waitMs;
  for (;;) {
    const plan = actor.here;
    const known = knownBy(actor, call);
    if (known !== undefined) return known;
    const begun = begin(plan, call, actor.place.clock());
    if ("refuse" in begun) throw begun.refuse;
    if ("wait" in begun) {
      if (await actor.changed(end)) continue;
      const moving = new BerthError(
        "unavailable",
        "A member is on its way in or out of the plan.",
        {
          hint: "Try again in a moment.",
        },
      );
      throw planBusy(plan) ?? moving;
    }
    const n = "join" in begun ? begun.join : begun.began.n;
    const { key, hash } = call;
    const write = key === undefined ? undefined : () => keepKey(actor.place, key, hash, n);
    actor.commit("join" in begun ? plan : begun.plan, { write });
    return n;
  }
}

function knownBy({ place }: PlanActor, { key, hash }: RunCall): number | undefined {
  if (key === undefined) return undefined;
  const known = keyedRun(place, key);
  if (known === undefined) return undefined;
  if (known.hash !== hash) {
    throw new BerthError("idempotency_mismatch", "The key was used before, with another call.", {
      hint: "Use a new key for a new call.",
    });
  }
  const told = runOf(place, known.n);
  // A call that was refused has done nothing: its key may try again.
  return told === null || refusalOf(told) !== undefined ? undefined : known.n;
}

async function ended(actor: PlanActor, n: number, waitMs: number): Promise<void> {
  const end = actor.place.clock() + waitMs;
  while (actor.record?.run?.n === n) {
    if (!(await actor.changed(end))) return;
  }
}

/** So many runs have ended since then. */
function forgotten(): BerthError {
  return new BerthError("unavailable", "How the run ended is no longer known.");
}
