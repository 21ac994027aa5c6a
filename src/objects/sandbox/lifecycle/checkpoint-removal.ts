/** Removes checkpoints: marks the row, removes the tree, deletes the row. A crash leaves no tree behind. */
import type { SandboxRecord } from "../../../core/sandbox/record.ts";
import { limits } from "../../../protocol/limits.ts";
import { messageOf } from "../../shared/result.ts";
import { sleep } from "../../shared/timeout.ts";
import type { SandboxActor } from "../actor.ts";
import { type CheckpointRow, deleteRow, findRow, listRows, updateRow } from "./checkpoint-rows.ts";

/** Called by a fresh instance before anything else: removes what an earlier one had begun to save or remove. */
export function removeLeftovers(actor: SandboxActor): void {
  for (const row of listRows(actor.host)) if (row.state !== "ready") beginRemoval(actor, row);
}

/** Removes a checkpoint that is no longer needed; may be repeated. */
export function discardCheckpoint(actor: SandboxActor, id: string): void {
  const row = findRow(actor.host, id);
  if (row !== undefined && row.state !== "leaving") beginRemoval(actor, row);
}

/** Removes all trees of a sandbox that is being destroyed, but those that a template has taken over. */
export async function removeAll(actor: SandboxActor): Promise<void> {
  for (const row of listRows(actor.host)) {
    const isOfTemplate = row.used_by === "template" && row.state === "ready";
    if (!isOfTemplate) await actor.container.removeSnapshot(row.handle);
    deleteRow(actor.host, row.id);
  }
}

/** Removes what earlier pauses saved: a newer tree replaces it. */
export function discardPauseCheckpoints(actor: SandboxActor, exceptId: string): void {
  for (const row of listRows(actor.host)) {
    if (row.used_by === "pause" && row.state === "ready" && row.id !== exceptId)
      beginRemoval(actor, row);
  }
}

/** From here on the checkpoint cannot be used; its tree and then its row follow. */
export function beginRemoval(actor: SandboxActor, row: CheckpointRow): void {
  updateRow(actor.host, row.id, { ...row, state: "leaving" });
  const firstTry = removeWhenUnread(actor, row.handle);
  // A tree that is still being saved freezes the container until it is complete.
  if (row.state === "making") actor.freeze.freezeDuring(firstTry).catch(() => undefined);
  actor.host.waitUntil(finishRemoval(actor, row, firstTry));
}

/** A start that was admitted earlier still finds its tree, however late it reads it. */
function removeWhenUnread(actor: SandboxActor, handle: string): Promise<void> {
  const remove = () => actor.container.removeSnapshot(handle);
  const isWanted = ({ state }: SandboxRecord) =>
    state.name === "starting" && state.start.snapshot === handle;
  if (!isWanted(actor.facts.sandbox)) return remove();
  return actor.waitUntil((record) => !isWanted(record), limits.snapshotTimeoutMs).then(remove);
}

const removeTriesMax = 6;
const removePauseMs = 500;

/** An unreachable engine returns soon. What still fails is left to the next instance. Never rejects. */
async function finishRemoval(
  actor: SandboxActor,
  row: CheckpointRow,
  firstTry: Promise<void>,
): Promise<void> {
  const { host } = actor;
  let removal = firstTry;
  for (let tries = 1; ; tries += 1) {
    try {
      await removal;
      if (actor.existing !== undefined) deleteRow(host, row.id);
      return;
    } catch (error) {
      host.log({ sandbox: row.id, failed: "remove a checkpoint", message: messageOf(error) });
    }
    if (tries === removeTriesMax || actor.existing === undefined) return;
    const pauseMs = removePauseMs * 2 ** (tries - 1);
    await sleep(host, pauseMs);
    if (actor.existing === undefined) return;
    removal = actor.container.removeSnapshot(row.handle);
  }
}
