/** Saves the tree of a participant for a commit, and compares it with the last commit. */
import { admitCall } from "../../../core/sandbox/admit.ts";
import type { Changes } from "../../../protocol/checkpoint.ts";
import { asBerthError } from "../../../protocol/errors.ts";
import { limits } from "../../../protocol/limits.ts";
import type { SandboxActor } from "../actor.ts";
import { ensureRunning } from "../lease/gated-admission.ts";
import { type CheckpointRow, findRow } from "../lifecycle/checkpoint-rows.ts";
import { saveTree, waitUntilSettled } from "../lifecycle/checkpoints.ts";

export async function saveForPlan(actor: SandboxActor): Promise<CheckpointRow> {
  await waitUntilSettled(actor, limits.snapshotTimeoutMs);
  actor.refuseIfDestroyed();
  try {
    return await saveTree(actor, { name: null, usedBy: "plan" });
  } catch (error) {
    // If the sandbox has ended, that is the reason why it could not be saved.
    actor.refuseIfDestroyed();
    if (asBerthError(error)?.code !== "not_running") throw error;
  }
  // A sandbox that has never run has no tree: it is started once to get one, if it may be.
  const admission = admitCall(actor.facts.sandbox, true);
  if ("refuse" in admission) throw admission.refuse;
  await ensureRunning(actor, true);
  return saveTree(actor, { name: null, usedBy: "plan" });
}

/** Null if the comparison is not possible. */
export async function compareWithCommit(
  actor: SandboxActor,
  handle: string,
): Promise<Changes | null> {
  const { participant } = actor.facts;
  const committed = participant?.committed ?? null;
  const from = committed === null ? undefined : findRow(actor.host, committed.checkpoint)?.handle;
  if (committed !== null && from === undefined) return null;
  try {
    const listMax = limits.changedPathsMax;
    const changes = await actor.container.changes({ from, to: handle, listMax });
    return changes ?? null;
  } catch (error) {
    const expected = asBerthError(error);
    if (expected === undefined) throw error;
    // The tree is what is committed; without a list of changes it counts as changed.
    actor.host.log({
      sandbox: actor.facts.sandbox.spec.id,
      failed: "compare",
      message: expected.message,
    });
    return null;
  }
}
