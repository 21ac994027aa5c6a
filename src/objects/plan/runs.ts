/** Serves the calls that commit or roll back a plan. The run continues without its callers. */
import { planBusyError } from "../../core/plan/membership.ts";
import { beginRun, type RunOptions } from "../../core/plan/run.ts";
import { commitView, refusalOf } from "../../core/plan/view.ts";
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { Commit } from "../../protocol/plan.ts";
import type { PlanActor } from "./actor.ts";
import { loadRun, loadRunOfKey, saveKey } from "./history.ts";

export type RunCall = RunOptions & {
  key: string | undefined;
  /** The digest of the whole call except its `waitMs`. */
  hash: string;
};

export async function commitOrRollBack(actor: PlanActor, call: RunCall): Promise<Commit> {
  const n = await beginOrJoin(actor, call);
  await waitForEnd(actor, n, limits.planResponseMs);
  const run = loadRun(actor.host, n);
  // It was deleted because many others have ended since.
  if (run === null) {
    throw new BerthError("unavailable", "The result of the run is no longer stored.");
  }
  const refused = refusalOf(run);
  if (refused !== undefined) throw refused;
  return commitView(run);
}

/** Waits until the run has ended, at most `waitMs`. */
export async function waitForCommit(actor: PlanActor, n: number, waitMs: number): Promise<Commit> {
  await waitForEnd(actor, n, waitMs);
  const run = loadRun(actor.host, n);
  if (run === null) throw new BerthError("not_found", `The plan has no commit ${n}.`);
  return commitView(run);
}

async function beginOrJoin(actor: PlanActor, call: RunCall): Promise<number> {
  const end = actor.host.clock() + call.waitMs;
  for (;;) {
    const plan = actor.current;
    const known = runOfKey(actor, call);
    if (known !== undefined) return known;
    const decision = beginRun(plan, call, actor.host.clock());
    if ("refuse" in decision) throw decision.refuse;
    if ("wait" in decision) {
      if (await actor.waitForChange(end)) continue;
      const changingError = new BerthError(
        "unavailable",
        "A member is joining or leaving the plan.",
        { hint: "Try again in a moment." },
      );
      throw planBusyError(plan) ?? changingError;
    }
    const n = "join" in decision ? decision.join : decision.newRun.n;
    const { key, hash } = call;
    const write = key === undefined ? undefined : () => saveKey(actor.host, key, hash, n);
    actor.commit("join" in decision ? plan : decision.plan, { write });
    return n;
  }
}

function runOfKey({ host }: PlanActor, { key, hash }: RunCall): number | undefined {
  if (key === undefined) return undefined;
  const known = loadRunOfKey(host, key);
  if (known === undefined) return undefined;
  if (known.hash !== hash) {
    throw new BerthError(
      "idempotency_mismatch",
      "The idempotency key was used for a different call.",
      { hint: "Use a new key for a new call." },
    );
  }
  const run = loadRun(host, known.n);
  // A refused call has had no effect, so its key may be used to try again.
  return run === null || refusalOf(run) !== undefined ? undefined : known.n;
}

async function waitForEnd(actor: PlanActor, n: number, waitMs: number): Promise<void> {
  const end = actor.host.clock() + waitMs;
  while (actor.record?.run?.n === n) {
    if (!(await actor.waitForChange(end))) return;
  }
}
