/**
 * Owns the end of checkpoints: a row is given up first, its tree follows, and then the row goes, so a crash leaves none
 * behind. Does not own whether one may go (checkpoints.ts), nor what needs one (core).
 */
import type { SandboxRecord } from "../../../core/sandbox/record.ts";
import { limits } from "../../../protocol/limits.ts";
import { pause } from "../../shared/timeout.ts";
import type { SandboxActor } from "../actor.ts";
import { type CheckpointRow, erase, rowOf, rows, update } from "./checkpoint-rows.ts";

/** A fresh instance finds what an earlier one had begun: it is undone, and nothing else happens before. */
export function cleanUp(actor: SandboxActor): void {
  for (const row of rows(actor.host)) if (row.state !== "ready") leave(actor, row);
}

/** What nobody needs any more; harmless when repeated. */
export function giveUp(actor: SandboxActor, id: string): void {
  const row = rowOf(actor.host, id);
  if (row !== undefined && row.state !== "leaving") leave(actor, row);
}

/** With the sandbox go all trees that were saved of it. */
export async function removeAll(actor: SandboxActor): Promise<void> {
  for (const row of rows(actor.host)) {
    await actor.container.removeSnapshot(row.handle);
    erase(actor.host, row.id);
  }
}

/** What pauses had saved is older than this tree, or was given up for it. */
export function leavePauses(actor: SandboxActor, exceptId: string): void {
  for (const row of rows(actor.host)) {
    if (row.used_by === "pause" && row.state === "ready" && row.id !== exceptId) leave(actor, row);
  }
}

/** From here on it cannot be used; the tree follows, and then the row. */
export function leave(actor: SandboxActor, row: CheckpointRow): void {
  update(actor.host, row.id, { ...row, state: "leaving" });
  const first = removeUnread(actor, row.handle);
  // One that was still being made holds everything still until it is whole.
  if (row.state === "making") actor.stillness.during(first).catch(() => undefined);
  actor.host.background(removed(actor, row, first));
}

/** A start that was admitted before finds its tree, however late it comes to read it. */
function removeUnread(actor: SandboxActor, handle: string): Promise<void> {
  const remove = () => actor.container.removeSnapshot(handle);
  const isWanted = ({ state }: SandboxRecord) =>
    state.name === "starting" && state.start.snapshot === handle;
  if (!isWanted(actor.facts.sandbox)) return remove();
  return actor.until((record) => !isWanted(record), limits.snapshotTimeoutMs).then(remove);
}

const removeTriesMax = 6;
const removePauseMs = 500;

/** An engine that is away comes back soon. What fails all the same is done by the next instance. Never rejects. */
async function removed(
  actor: SandboxActor,
  row: CheckpointRow,
  first: Promise<void>,
): Promise<void> {
  const { host } = actor;
  let removal = first;
  for (let tries = 1; ; tries += 1) {
    try {
      await removal;
      if (actor.known !== undefined) erase(host, row.id);
      return;
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      host.log({ sandbox: row.id, failed: "remove a checkpoint", message });
    }
    if (tries === removeTriesMax || actor.known === undefined) return;
    const pauseMs = removePauseMs * 2 ** (tries - 1);
    await pause(host, pauseMs);
    if (actor.known === undefined) return;
    removal = actor.container.removeSnapshot(row.handle);
  }
}
