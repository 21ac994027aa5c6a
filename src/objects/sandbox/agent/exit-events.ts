/**
 * Owns the row that says up to which ending of which life the events tell.
 */
import type { Host } from "../host.ts";

export function toldUntil(host: Host, incarnation: string): number {
  const [row] = host.sql<{ n: number }>(
    "SELECT n FROM told_ending WHERE incarnation = ?",
    incarnation,
  );
  return row?.n ?? 0;
}

/** Written beside the events, in the same commit. */
export function tellUntil(host: Host, incarnation: string, n: number): void {
  host.sql("INSERT OR REPLACE INTO told_ending VALUES (1, ?, ?)", incarnation, n);
}
