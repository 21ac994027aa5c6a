/**
 * Owns what is slow of a commit: the tree of a member saved while its run holds the lease, and compared with the
 * last commit. Does not own whether the run is still wanted afterwards (member.ts).
 */

import { admit } from "../../../core/sandbox/admit.ts";
import type { Changes } from "../../../protocol/changes.ts";
import { asBerthError } from "../../../protocol/errors.ts";
import { limits } from "../../../protocol/limits.ts";
import type { SandboxActor } from "../actor.ts";
import { ready } from "../lease/gated.ts";
import { type CheckpointRow, rowOf } from "../lifecycle/checkpoint-rows.ts";
import { save, settled } from "../lifecycle/checkpoints.ts";
import { refuseWhenOver } from "../lifecycle/lifecycle.ts";

export async function saveForPlan(actor: SandboxActor): Promise<CheckpointRow> {
  await settled(actor, limits.snapshotTimeoutMs);
  refuseWhenOver(actor);
  try {
    return await save(actor, { name: null, usedBy: "plan" });
  } catch (error) {
    // Its end is why it could not be saved.
    refuseWhenOver(actor);
    if (asBerthError(error)?.code !== "not_running") throw error;
  }
  // It has no tree that could be saved before it has run: one that may be woken gets one.
  const admission = admit(actor.facts.sandbox, true);
  if ("refuse" in admission) throw admission.refuse;
  await ready(actor, true);
  return save(actor, { name: null, usedBy: "plan" });
}

/** Null where it cannot be told. */
export async function changesOf(actor: SandboxActor, handle: string): Promise<Changes | null> {
  const { seat } = actor.facts;
  const committed = seat?.committed ?? null;
  const from = committed === null ? undefined : rowOf(actor.host, committed.checkpoint)?.handle;
  if (committed !== null && from === undefined) return null;
  try {
    const listMax = limits.changedPathsMax;
    const changes = await actor.container.changes({ from, to: handle, listMax });
    return changes ?? null;
  } catch (error) {
    const known = asBerthError(error);
    if (known === undefined) throw error;
    // What is committed is the tree; without the list of its changes it counts as changed.
    actor.host.log({
      sandbox: actor.facts.sandbox.spec.id,
      failed: "compare",
      message: known.message,
    });
    return null;
  }
}
