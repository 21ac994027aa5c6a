/**
 * Asks the members that are to be ended whether somebody holds their lease. See members.ts for what is decided then.
 */
import { memberHeldError } from "../../core/plan/membership.ts";
import type { Member } from "../../core/plan/record.ts";
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import { withTimeout } from "../shared/timeout.ts";
import type { PlanActor } from "./actor.ts";

/** If the result is empty, no time has passed since the plan was read, and the caller may decide on what it has read. */
export function withoutKnownFree(
  members: readonly Member[],
  free: ReadonlySet<string>,
): readonly Member[] {
  return members.filter(({ sandbox }) => !free.has(sandbox));
}

/** Throws if somebody holds one of the leases, else adds the sandboxes to `free`. The caller must read the plan again. */
export async function checkHolders(
  { requests, host, current: { tenant, name, newestRun } }: PlanActor,
  members: readonly Member[],
  free: Set<string>,
): Promise<void> {
  const caller = { tenant, plan: name, run: newestRun };
  for (let start = 0; start < members.length; start += limits.planFinishesMax) {
    const batch = members.slice(start, start + limits.planFinishesMax);
    const holders = await Promise.all(
      batch.map(({ sandbox }) =>
        withTimeout(host, requests.ports.participantOf(sandbox).holder(caller)).catch(() => {
          throw noResponseError(sandbox);
        }),
      ),
    );
    for (const [index, member] of batch.entries()) {
      const result = holders[index];
      if (result === undefined) continue;
      // A refusal means that the sandbox is gone, so nobody holds its lease.
      if ("ok" in result && result.ok !== null) throw memberHeldError(member, result.ok.name);
      free.add(member.sandbox);
    }
  }
}

function noResponseError(sandbox: string): BerthError {
  return new BerthError("unavailable", `The sandbox ${sandbox} did not say who holds its lease.`, {
    hint: "Nothing was changed. Try again, or pass `?force=true`.",
    facts: { sandbox },
  });
}
