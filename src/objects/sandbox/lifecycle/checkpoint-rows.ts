/** The rows of checkpoints: which exist, how far each has got, and what needs it. */
import type { Checkpoint } from "../../../protocol/checkpoint.ts";
import { insertInto } from "../../shared/columns.ts";
import type { Host } from "../host.ts";

export type CheckpointRow = {
  id: string;
  name: string | null;
  /** `making`: the tree may exist or not. `leaving`: the checkpoint can no longer be used. */
  state: "making" | "ready" | "leaving";
  /** The name by which a start takes the tree: generated here, replaced by the platform's name once saved. */
  handle: string;
  made_at: number;
  expires_at: number | null;
  bytes: number;
  took_ms: number;
  /** A tree that is used by a template outlives the sandbox: Templates removes it. */
  used_by: "pause" | "plan" | "template" | null;
  automatic: 0 | 1;
};

/** Oldest first. */
export function listRows(host: Host): CheckpointRow[] {
  return host.sql<CheckpointRow>("SELECT * FROM checkpoint ORDER BY made_at, rowid");
}

export function findRow(host: Host, id: string): CheckpointRow | undefined {
  return host.sql<CheckpointRow>("SELECT * FROM checkpoint WHERE id = ?", id)[0];
}

/** The newest saved tree, for a start where files do not outlive their container. */
export function newestSavedTree(host: Host, now: number): string | undefined {
  return listRows(host).findLast(
    (row) => row.state === "ready" && (row.expires_at === null || now < row.expires_at),
  )?.handle;
}

export function insertRow(host: Host, row: CheckpointRow): void {
  insertInto(host, "checkpoint", row);
}

export function updateRow(
  host: Host,
  id: string,
  { state, handle, expires_at, bytes, took_ms }: CheckpointRow,
): void {
  host.sql(
    "UPDATE checkpoint SET state = ?, handle = ?, expires_at = ?, bytes = ?, took_ms = ? WHERE id = ?",
    state,
    handle,
    expires_at,
    bytes,
    took_ms,
    id,
  );
}

export function deleteRow(host: Host, id: string): void {
  host.sql("DELETE FROM checkpoint WHERE id = ?", id);
}

export function viewRow(row: CheckpointRow): Checkpoint {
  return {
    id: row.id,
    ...(row.name === null ? {} : { name: row.name }),
    createdAt: new Date(row.made_at).toISOString(),
    expiresAt: row.expires_at === null ? null : new Date(row.expires_at).toISOString(),
    bytes: row.bytes,
    tookMs: row.took_ms,
    ...(row.automatic === 1 ? { automatic: true as const } : {}),
    ...(row.used_by === null ? {} : { inUse: row.used_by }),
  };
}
