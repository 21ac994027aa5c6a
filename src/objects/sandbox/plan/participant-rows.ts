/**
 * Owns the rows of a sandbox about plans: the one of the plan that it is a member of, and of each that it has heard
 * from the newest change of members. Does not own what they mean (core/plan/seat.ts).
 */
import type { Seat } from "../../../core/plan/participant/participant.ts";
import { limits } from "../../../protocol/limits.ts";
import type { Host } from "../host.ts";

type SeatRow = {
  plan: string;
  run: number;
  phase: string;
  committed: string | null;
  last: string | null;
};

export function loadSeat(host: Host): Seat | null {
  const row = host.sql<SeatRow>("SELECT plan, run, phase, committed, last FROM seat")[0];
  if (row === undefined) return null;
  const { plan, run, phase, committed, last } = row;
  return {
    plan,
    run,
    phase: JSON.parse(phase),
    committed: committed === null ? null : JSON.parse(committed),
    last: last === null ? null : JSON.parse(last),
  };
}

export function saveSeat(host: Host, seat: Seat | null): void {
  if (seat === null) {
    host.sql("DELETE FROM seat");
    return;
  }
  host.sql(
    "INSERT OR REPLACE INTO seat (one, plan, run, phase, committed, last) VALUES (1, ?, ?, ?, ?, ?)",
    seat.plan,
    seat.run,
    JSON.stringify(seat.phase),
    seat.committed === null ? null : JSON.stringify(seat.committed),
    seat.last === null ? null : JSON.stringify(seat.last),
  );
}

/** 0: none yet. */
export function heardMove(host: Host, plan: string): number {
  return host.sql<{ move: number }>("SELECT move FROM heard WHERE plan = ?", plan)[0]?.move ?? 0;
}

export function hearMove(host: Host, plan: string, move: number): void {
  if (heardMove(host, plan) === move) return;
  host.sql("INSERT OR REPLACE INTO heard (plan, move) VALUES (?, ?)", plan, move);
  host.sql(
    "DELETE FROM heard WHERE rowid <= (SELECT max(rowid) FROM heard) - ?",
    limits.plansHeardMax,
  );
}
