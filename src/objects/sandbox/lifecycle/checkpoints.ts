/** Saves and restores checkpoints. The row is written before the tree, so that a crash leaves no unknown tree. */
import { failHint } from "../../../core/sandbox/admit.ts";
import type { SandboxRecord, SandboxSpec } from "../../../core/sandbox/record.ts";
import type { Checkpoint, CheckpointCall, Checkpoints } from "../../../protocol/checkpoint.ts";
import { BerthError } from "../../../protocol/errors.ts";
import { limits } from "../../../protocol/limits.ts";
import type { Sandbox } from "../../../protocol/sandbox.ts";
import type { SavedTree } from "../../../runtime/runtime.ts";
import { withTimeout } from "../../shared/timeout.ts";
import type { SandboxActor } from "../actor.ts";
import { beginExclusive, type GatedCaller, newStart } from "../lease/gated-admission.ts";
import { pruneCheckpoints } from "./automatic-checkpoints.ts";
import { beginRemoval, discardPauseCheckpoints } from "./checkpoint-removal.ts";
import {
  type CheckpointRow,
  findRow,
  insertRow,
  listRows,
  updateRow,
  viewRow,
} from "./checkpoint-rows.ts";
import { snapshotFrozen } from "./frozen-snapshot.ts";
import { currentView } from "./lifecycle.ts";

export function list(actor: SandboxActor): Checkpoints {
  const checkpoints = listRows(actor.host)
    .filter((row) => row.state === "ready")
    .map(viewRow)
    .reverse();
  return { checkpoints, nextCursor: null };
}

export function get(actor: SandboxActor, id: string): Checkpoint {
  return viewRow(readyRow(actor, id));
}

export async function make(
  actor: SandboxActor,
  call: CheckpointCall,
  caller: GatedCaller,
): Promise<Checkpoint> {
  actor.refuseIfDestroyed();
  refuseWithoutSaving(actor);
  refuseWhenFull(actor);
  const end = await beginExclusive(actor, caller, { what: "a checkpoint", counted: true });
  try {
    await waitUntilSettled(actor);
    actor.refuseIfDestroyed();
    // Other callers may have saved one during the wait.
    refuseWhenFull(actor);
    const row = await saveTree(actor, { name: call.name ?? null, usedBy: null });
    pruneCheckpoints(actor);
    return viewRow(row);
  } finally {
    end();
  }
}

/** With `keepCheckpoints` a new one removes the oldest. Expired checkpoints do not count; some of them are remembered, so that a reader learns that they expired. */
function refuseWhenFull(actor: SandboxActor): void {
  const { checkpointsMax } = limits;
  if (actor.facts.sandbox.spec.keepCheckpoints !== undefined) return;
  const requested = listRows(actor.host).filter(
    (row) => row.used_by === null && row.state !== "leaving" && row.automatic === 0,
  );
  const expired = requested.filter((row) => hasExpired(actor, row));
  const keptCount = requested.length - expired.length;
  if (keptCount >= checkpointsMax) {
    throw new BerthError("too_many", `The sandbox already has ${keptCount} checkpoints.`, {
      hint: "Delete one that you no longer need, or set `keepCheckpoints`.",
      facts: { checkpointsMax },
    });
  }
  for (const row of expired.slice(0, Math.max(0, expired.length - checkpointsMax)))
    beginRemoval(actor, row);
}

export type TemplateTree = { handle: string; bytes: number; expiresAt: number | null };

/** The caller chose the handle and has stored it, so no crash leaves a tree that nobody knows. */
export async function saveForTemplate(actor: SandboxActor, handle: string): Promise<TemplateTree> {
  actor.refuseIfDestroyed();
  refuseWithoutSaving(actor);
  const known = () =>
    listRows(actor.host).find(({ name, used_by, state }) => {
      return used_by === "template" && name === handle && state === "ready";
    });
  const viewTree = (row: CheckpointRow): TemplateTree => {
    return { handle: row.handle, bytes: row.bytes, expiresAt: row.expires_at };
  };
  const saved = known();
  if (saved !== undefined) return viewTree(saved);
  const exclusive = { what: "a template", counted: true };
  const end = await beginExclusive(actor, { mayWake: false }, exclusive);
  try {
    await waitUntilSettled(actor);
    actor.refuseIfDestroyed();
    return viewTree(await saveTree(actor, { name: handle, usedBy: "template", handle }));
  } finally {
    end();
  }
}

type SaveOptions = {
  name: string | null;
  usedBy: CheckpointRow["used_by"];
  automatic?: boolean;
  /** Generated if left out. */
  handle?: string;
};

/** Saves the tree of this moment, completely or not at all. */
export async function saveTree(
  actor: SandboxActor,
  { name, usedBy, automatic = false, handle: chosen }: SaveOptions,
): Promise<CheckpointRow> {
  const { host } = actor;
  const began = actor.now();
  const row: CheckpointRow = {
    id: `${actor.facts.sandbox.spec.id}.${host.randomId(12)}`,
    name,
    state: "making",
    handle: chosen ?? `c${host.randomId(23)}`,
    made_at: began,
    expires_at: null,
    bytes: 0,
    took_ms: 0,
    used_by: usedBy,
    automatic: automatic ? 1 : 0,
  };
  insertRow(host, row);
  await host.flush();
  try {
    const { handle, bytes } = await actor.freeze.freezeDuring(saveWithinLimit(actor, row));
    // A destroy in the meantime removes it too.
    actor.refuseIfDestroyed();
    const now = actor.now();
    const ready: CheckpointRow = {
      ...row,
      state: "ready",
      handle,
      bytes,
      took_ms: now - began,
      expires_at: expiresAtOf(actor, now),
    };
    updateRow(host, row.id, ready);
    discardPauseCheckpoints(actor, row.id);
    actor.commit(
      {},
      [{ type: "checkpoint", what: "made", id: row.id, ...nameField(name) }],
      "saved",
    );
    return ready;
  } catch (error) {
    beginRemoval(actor, row);
    // If the sandbox has ended, that is the reason why it could not be saved.
    actor.refuseIfDestroyed();
    throw error;
  }
}

/** A snapshot without a result would keep every call out for ever; the engine ends it before this limit. */
function saveWithinLimit(actor: SandboxActor, row: CheckpointRow): Promise<SavedTree> {
  const waitMs = limits.snapshotTimeoutMs + limits.waitMaxMs;
  const saving = snapshotFrozen(actor, row.handle, row.used_by === "pause");
  return withTimeout(actor.host, saving, waitMs, () => {
    const message = "Saving the files took too long and was stopped.";
    return new BerthError("unavailable", message, { hint: "Try again in a moment." });
  });
}

export async function remove(actor: SandboxActor, id: string): Promise<Checkpoint> {
  actor.refuseIfDestroyed();
  const row = knownRow(actor, id);
  if (row.used_by !== null) {
    throw new BerthError(
      "checkpoint_in_use",
      `The ${row.used_by} of this sandbox still needs the checkpoint.`,
      {
        hint: "It is removed when it is no longer needed.",
        facts: { usedBy: row.used_by },
      },
    );
  }
  beginRemoval(actor, row);
  actor.commit(
    {},
    [{ type: "checkpoint", what: "removed", id, ...nameField(row.name) }],
    "checkpoint removed",
  );
  return viewRow(row);
}

/** Ends all processes; the files become those of the checkpoint. */
export async function restore(
  actor: SandboxActor,
  id: string,
  caller: GatedCaller,
): Promise<Sandbox> {
  actor.refuseIfDestroyed();
  const end = await beginExclusive(actor, caller, { what: "a restore", counted: true });
  try {
    await waitUntilSettled(actor);
    actor.refuseIfDestroyed();
    const snapshot = renewExpiry(actor, id);
    actor.stepSandbox({ type: "restore", start: { ...newStart(actor), snapshot } });
    await actor.waitUntil(({ state }) => state.name !== "starting", limits.waitMaxMs);
    refuseWhenFailed(actor);
    return currentView(actor);
  } finally {
    end();
  }
}

/** What a fork starts from, and what it takes from its origin by default. */
export type Fork = { base: string; spec: SandboxSpec; metadata: Record<string, string> };

export function describeFork(actor: SandboxActor, id: string): Fork {
  actor.refuseIfDestroyed();
  const { sandbox, metadata } = actor.facts;
  return { base: readyRow(actor, id).handle, spec: sandbox.spec, metadata: { ...metadata.map } };
}

/**
 * Records that the sandbox started from this tree. A tree saved by a pause is removed now, unless files do not
 * outlive their container: there a lost container starts from it until a newer one is saved.
 */
export function onStartedFrom(actor: SandboxActor, handle: string): void {
  const row = listRows(actor.host).find((candidate) => candidate.handle === handle);
  if (row?.used_by === "pause") {
    if (actor.container.keepsFiles) beginRemoval(actor, row);
  } else if (row !== undefined) {
    discardPauseCheckpoints(actor, row.id);
    const event = {
      type: "checkpoint",
      what: "restored",
      id: row.id,
      ...nameField(row.name),
    } as const;
    actor.commit({}, [event], "restored");
  }
}

/** The tree for a start; renews the checkpoint's expiry where it has one. */
export function renewExpiry(actor: SandboxActor, id: string): string {
  const row = readyRow(actor, id);
  if (row.expires_at !== null) {
    updateRow(actor.host, id, { ...row, expires_at: expiresAtOf(actor, actor.now()) });
  }
  return row.handle;
}

export function readyRow(actor: SandboxActor, id: string): CheckpointRow {
  const row = knownRow(actor, id);
  if (row.expires_at !== null && hasExpired(actor, row)) {
    throw new BerthError("checkpoint_expired", "The checkpoint has expired.", {
      facts: { expiredAt: new Date(row.expires_at).toISOString() },
    });
  }
  return row;
}

function knownRow(actor: SandboxActor, id: string): CheckpointRow {
  const row = findRow(actor.host, id);
  if (row?.state === "ready") return row;
  throw new BerthError("not_found", "This sandbox has no such checkpoint.", {
    hint: "`GET /v1/sandboxes/:id/checkpoints` lists its checkpoints.",
  });
}

function hasExpired(actor: SandboxActor, { expires_at: expiresAt }: CheckpointRow): boolean {
  return expiresAt !== null && actor.now() >= expiresAt;
}

export function isSettled(state: SandboxRecord["state"]["name"]): boolean {
  return state !== "starting" && state !== "pausing";
}

/** A caller of restore must not continue as if it had other files than it has. */
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
        ? "It still has its previous files; the next call starts it with them."
        : failHint(reason),
    },
  );
}

/** Waits out a start or a pause: trees are saved and restored only in a stable state. */
export async function waitUntilSettled(
  actor: SandboxActor,
  waitMs: number = limits.waitMaxMs,
): Promise<void> {
  await actor.waitUntil(({ state }) => isSettled(state.name), waitMs);
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

function expiresAtOf(actor: SandboxActor, now: number): number | null {
  return actor.container.keepsFiles ? null : now + limits.checkpointLifeMs;
}

function nameField(name: string | null): { name?: string } {
  return name === null ? {} : { name };
}
