/**
 * Owns the question whether somebody holds those who are to be ended. Does not own what is decided then (members.ts).
 */
import { memberHeld } from "../../core/plan/membership.ts";
import type { Member } from "../../core/plan/record.ts";
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import { inTime } from "../shared/timeout.ts";
import type { PlanActor } from "./actor.ts";

/** Whom nobody has asked about yet. Where it is none, what was read may be decided on: no time has passed. */
export function unasked(members: readonly Member[], free: ReadonlySet<string>): readonly Member[] {
  return members.filter(({ sandbox }) => !free.has(sandbox));
}

/**
 * Refuses where somebody has the lease of one that is to be ended; else they are `free`. It takes its time: the plan is
 * to be looked at again.
 */
export async function askHolders(
  { asks, place, here: { tenant, name, newest } }: PlanActor,
  unknown: readonly Member[],
  free: Set<string>,
): Promise<void> {
  for (let at = 0; at < unknown.length; at += limits.planFinishAtOnceMax) {
    const some = unknown.slice(at, at + limits.planFinishAtOnceMax);
    const holders = await Promise.all(
      some.map(({ sandbox }) =>
        inTime(
          place,
          asks.ports.memberOf(sandbox).holder({ tenant, plan: name, run: newest }),
        ).catch(() => {
          throw silent(sandbox);
        }),
      ),
    );
    for (const [nth, member] of some.entries()) {
      const told = holders[nth];
      if (told === undefined) continue;
      // What is gone is held by nobody.
      if ("ok" in told && told.ok !== null) throw memberHeld(member, told.ok.name);
      free.add(member.sandbox);
    }
  }
}

function silent(sandbox: string): BerthError {
  return new BerthError("unavailable", "A member could not be asked whether somebody holds it.", {
    hint: "Nothing was done: try again, or say ?force=true.",
    facts: { sandbox },
  });
}
