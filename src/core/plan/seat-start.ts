/**
 * Owns noting how the start ended that a rollback began: in the commit in which the sandbox itself learns of it, so
 * that no crash and no later start can tell another tale.
 */
import type { SandboxState } from "../sandbox/record.ts";
import type { Seat } from "./seat.ts";

export function seatAfter(seat: Seat | null, was: SandboxState, is: SandboxState): Seat | null {
  if (seat === null || was === is || seat.phase.name !== "restoring") return seat;
  const { phase } = seat;
  if (!isOf(phase.startId, was) || isOf(phase.startId, is)) return seat;
  const came =
    is.name === "running" ? "restored" : { failed: "reason" in is ? is.reason : is.name };
  return { ...seat, phase: { ...phase, came } };
}

function isOf(startId: string, state: SandboxState): boolean {
  return state.name === "starting" && state.start.startId === startId;
}
