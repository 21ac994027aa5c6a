/**
 * Owns the one row of a sandbox that is a member of a plan. Does not own what it means (core/plan/seat.ts).
 */
import type { Seat } from "../../core/plan/seat.ts";
import type { Host } from "./host.ts";

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
