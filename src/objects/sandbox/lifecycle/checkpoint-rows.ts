/**
 * Owns the rows of checkpoints: which there are, how far each has got, what needs it.
 * Does not own making (checkpoints.ts) or removing (checkpoint-removal.ts) the trees that they stand for.
 */
import type { Checkpoint } from "../../../protocol/checkpoint.ts";
import type { Host } from "../host.ts";

export type CheckpointRow = {
  id: string;
  name: string | null;
  /** `making`: the tree may be there or not. `leaving`: nobody may use it any more. */
  state: "making" | "ready" | "leaving";
  /** By which a start takes it: drawn by us, or, once it is made, what the platform calls it. */
  handle: string;
  made_at: number;
  expires_at: number | null;
  bytes: number;
  took_ms: number;
  used_by: "pause" | "plan" | null;
};

/** Oldest first. */
export function rows(host: Host): CheckpointRow[] {
  return host.sql<CheckpointRow>("SELECT * FROM checkpoint ORDER BY made_at, rowid");
}

export function rowOf(host: Host, id: string): CheckpointRow | undefined {
  return host.sql<CheckpointRow>("SELECT * FROM checkpoint WHERE id = ?", id)[0];
}

/** Where files do not outlive their container, the newest that were saved are the best there are. */
export function newestSaved(host: Host, now: number): string | undefined {
  return rows(host).findLast(
    (row) => row.state === "ready" && (row.expires_at === null || now < row.expires_at),
  )?.handle;
}

export function insert(host: Host, row: CheckpointRow): void {
  host.sql(
    "INSERT INTO checkpoint VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    row.id,
    row.name,
    row.state,
    row.handle,
    row.made_at,
    row.expires_at,
    row.bytes,
    row.took_ms,
    row.used_by,
  );
}

export function update(
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

export function erase(host: Host, id: string): void {
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
    ...(row.used_by === null ? {} : { inUse: row.used_by }),
  };
}
