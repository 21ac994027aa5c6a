/**
 * Owns checkpoints of a sandbox: made while nothing gated runs and everything stands still, and restored by a start.
 * A row comes before its tree, so a crash leaves no tree that nobody knows of.
 * Does not own their end (checkpoint-removal.ts), nor the move to a restored life (core/sandbox).
 */

import { failHint } from "../../../core/sandbox/admit.ts";
import type { SandboxRecord, SandboxSpec } from "../../../core/sandbox/record.ts";
import type { Checkpoint, CheckpointCall, Checkpoints } from "../../../protocol/checkpoint.ts";
import { BerthError } from "../../../protocol/errors.ts";
import { limits } from "../../../protocol/limits.ts";
import type { Sandbox } from "../../../protocol/sandbox.ts";
import type { Saved } from "../../../runtime/runtime.ts";
import { inTime } from "../../shared/timeout.ts";
import type { SandboxActor } from "../actor.ts";
import { alone } from "../lease/exclusive.ts";
import { type GatedCaller, newStart } from "../lease/gated.ts";
import { leave, leavePauses } from "./checkpoint-removal.ts";
import { type CheckpointRow, insert, rowOf, rows, update, viewRow } from "./checkpoint-rows.ts";
import { refuseWhenOver, told } from "./lifecycle.ts";

export function list(actor: SandboxActor): Checkpoints {
  const checkpoints = rows(actor.host)
    .filter((row) => row.state === "ready")
    .map(viewRow)
    .reverse();
  return { checkpoints, nextCursor: null };
}

export function look(actor: SandboxActor, id: string): Checkpoint {
  return viewRow(readyRow(actor, id));
}

export async function make(
  actor: SandboxActor,
  call: CheckpointCall,
  caller: GatedCaller,
): Promise<Checkpoint> {
  refuseWhenOver(actor);
  refuseWithoutSaving(actor);
  makeRoom(actor);
  const end = await alone(actor, caller, { what: "a checkpoint", counted: true });
  try {
    await settled(actor);
    refuseWhenOver(actor);
    // Others have had their turn since.
    makeRoom(actor);
    const row = await save(actor, { name: call.name ?? null, usedBy: null });
    return viewRow(row);
  } finally {
    end();
  }
}

/** One whose time is over takes no place; so many of these are remembered, to be told as that. */
function makeRoom(actor: SandboxActor): void {
  const { checkpointsMax } = limits;
  const asked = rows(actor.host).filter((row) => row.used_by === null && row.state !== "leaving");
  const over = asked.filter((row) => hasExpired(actor, row));
  const kept = asked.length - over.length;
  if (kept >= checkpointsMax) {
    throw new BerthError("too_many", `${kept} checkpoints are kept already.`, {
      hint: "Delete one that is no longer needed.",
      facts: { checkpointsMax },
    });
  }
  for (const row of over.slice(0, Math.max(0, over.length - checkpointsMax))) leave(actor, row);
}

/** The tree of this moment, saved whole or not at all. */
export async function save(
  actor: SandboxActor,
  { name, usedBy }: { name: string | null; usedBy: CheckpointRow["used_by"] },
): Promise<CheckpointRow> {
  const { host } = actor;
  const began = actor.now();
  const row: CheckpointRow = {
    id: `${actor.facts.sandbox.spec.id}.${host.draw(12)}`,
    name,
    state: "making",
    handle: `c${host.draw(23)}`,
    made_at: began,
    expires_at: null,
    bytes: 0,
    took_ms: 0,
    used_by: usedBy,
  };
  insert(host, row);
  await host.durable();
  try {
    const { handle, bytes } = await actor.stillness.during(savedInTime(actor, row.handle));
    // A destroy that came meanwhile takes it along.
    refuseWhenOver(actor);
    const now = actor.now();
    const made: CheckpointRow = {
      ...row,
      state: "ready",
      handle,
      bytes,
      took_ms: now - began,
      expires_at: expiry(actor, now),
    };
    update(host, row.id, made);
    leavePauses(actor, row.id);
    actor.commit({}, [{ type: "checkpoint", what: "made", id: row.id, ...named(name) }], "saved");
    return made;
  } catch (error) {
    leave(actor, row);
    // Its end is why it could not be saved.
    refuseWhenOver(actor);
    throw error;
  }
}

/** One of which nothing is heard would keep everybody out for ever; whoever saves it ends it before that. */
function savedInTime({ host, container }: SandboxActor, handle: string): Promise<Saved> {
  const waitMs = limits.snapshotTimeoutMs + limits.waitMaxMs;
  return inTime(host, container.snapshot(handle), waitMs, () => {
    const message = "Nothing was heard of the saving of the files, and it was given up.";
    return new BerthError("unavailable", message, { hint: "Try again in a moment." });
  });
}

export async function remove(actor: SandboxActor, id: string): Promise<Checkpoint> {
  refuseWhenOver(actor);
  const row = knownRow(actor, id);
  if (row.used_by !== null) {
    throw new BerthError("checkpoint_in_use", `A ${row.used_by} still needs the checkpoint.`, {
      hint: "It goes by itself when it is no longer needed.",
      facts: { usedBy: row.used_by },
    });
  }
  leave(actor, row);
  actor.commit(
    {},
    [{ type: "checkpoint", what: "removed", id, ...named(row.name) }],
    "checkpoint removed",
  );
  return viewRow(row);
}

/** Whatever runs ends; the files become those of the checkpoint. */
export async function restore(
  actor: SandboxActor,
  id: string,
  caller: GatedCaller,
): Promise<Sandbox> {
  refuseWhenOver(actor);
  const end = await alone(actor, caller, { what: "a restore", counted: true });
  try {
    await settled(actor);
    refuseWhenOver(actor);
    const snapshot = renewed(actor, id);
    actor.sandbox({ type: "restore", start: { ...newStart(actor), snapshot } });
    await actor.until(({ state }) => state.name !== "starting", limits.waitMaxMs);
    refuseWhenFailed(actor);
    return told(actor);
  } finally {
    end();
  }
}

/** What a fork begins from, and has of its origin unless it is told otherwise. */
export type Fork = { base: string; spec: SandboxSpec; metadata: Record<string, string> };

export function forkOf(actor: SandboxActor, id: string): Fork {
  refuseWhenOver(actor);
  const { sandbox, metadata } = actor.facts;
  return { base: readyRow(actor, id).handle, spec: sandbox.spec, metadata: { ...metadata.map } };
}

/**
 * It runs with that tree: that is told. What a pause had saved is no longer needed, but where files do not outlive their
 * container: there a lost one begins again from it, until something newer is saved.
 */
export function startedFrom(actor: SandboxActor, handle: string): void {
  const row = rows(actor.host).find((one) => one.handle === handle);
  if (row?.used_by === "pause") {
    if (actor.container.keepsFiles) leave(actor, row);
  } else if (row !== undefined) {
    leavePauses(actor, row.id);
    const event = { type: "checkpoint", what: "restored", id: row.id, ...named(row.name) } as const;
    actor.commit({}, [event], "restored");
  }
}

/** The tree that a start may begin from; where trees have a time, this one has all of its own again. */
export function renewed(actor: SandboxActor, id: string): string {
  const row = readyRow(actor, id);
  if (row.expires_at !== null) {
    update(actor.host, id, { ...row, expires_at: expiry(actor, actor.now()) });
  }
  return row.handle;
}

export function readyRow(actor: SandboxActor, id: string): CheckpointRow {
  const row = knownRow(actor, id);
  if (row.expires_at !== null && hasExpired(actor, row)) {
    throw new BerthError("checkpoint_expired", "The checkpoint was kept until its time was over.", {
      facts: { expiredAt: new Date(row.expires_at).toISOString() },
    });
  }
  return row;
}

function knownRow(actor: SandboxActor, id: string): CheckpointRow {
  const row = rowOf(actor.host, id);
  if (row?.state === "ready") return row;
  throw new BerthError("not_found", "There is no such checkpoint of this sandbox.", {
    hint: "GET /v1/sandboxes/:id/checkpoints lists those that there are.",
  });
}

function hasExpired(actor: SandboxActor, { expires_at: expiresAt }: CheckpointRow): boolean {
  return expiresAt !== null && actor.now() >= expiresAt;
}

export function isSettled(state: SandboxRecord["state"]["name"]): boolean {
  return state !== "starting" && state !== "pausing";
}

/** Whoever restored must not go on as if the files were others than they are. */
function refuseWhenFailed(actor: SandboxActor): void {
  const { state } = actor.facts.sandbox;
  if (state.name !== "failed") return;
  const { reason, restartable } = state;
  throw new BerthError(
    reason === "disk_full" ? "disk_full" : "start_failed",
    `The sandbox did not start from the checkpoint: ${reason}.`,
    {
      facts: { reason, state: state.name },
      hint: restartable
        ? "It has the files of before; the next call starts it with them."
        : failHint(reason),
    },
  );
}

/** What is on its way up or down is waited for: a tree is saved and restored in a state that stays. */
export async function settled(
  actor: SandboxActor,
  waitMs: number = limits.waitMaxMs,
): Promise<void> {
  await actor.until(({ state }) => isSettled(state.name), waitMs);
  const { name } = actor.facts.sandbox.state;
  if (isSettled(name)) return;
  throw new BerthError("unavailable", `The sandbox is still ${name}.`, { facts: { state: name } });
}

function refuseWithoutSaving(actor: SandboxActor): void {
  if (actor.container.savesFiles) return;
  throw new BerthError("unsupported", "This installation cannot save file trees.", {
    hint: "Its containers have no snapshots; download an archive of what you need.",
  });
}

function expiry(actor: SandboxActor, now: number): number | null {
  return actor.container.keepsFiles ? null : now + limits.checkpointLifeMs;
}

function named(name: string | null): { name?: string } {
  return name === null ? {} : { name };
}
