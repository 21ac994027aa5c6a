/**
 * Owns what a sandbox knows of the plan that it is a member of. Does not own the moves (seat-step.ts), nor what the
 * plan knows of it (record.ts).
 */
import type { SandboxState } from "../../sandbox/record.ts";
import type { Ended, Vote } from "../record.ts";

export type Seat = {
  plan: string;
  /** The highest number of a run that was heard. */
  run: number;
  phase: SeatPhase;
  /** The checkpoint of the last commit, and which one that was. */
  committed: { checkpoint: string; run: number } | null;
  /** How the newest run that ended here did so, for the plan that asks again. */
  last: { run: number; ended: Ended } | null;
};

/** The ticket is that of the run's lease: whose grant has another one, the lease is lost. */
export type SeatPhase =
  | { name: "over" }
  | { name: "holding"; ticket: string }
  | { name: "held"; ticket: string }
  /** `artefact`: the checkpoint that a commit makes the committed one. */
  | { name: "prepared"; ticket: string; vote: Vote; artefact: string | null }
  /** Started from its last commit; `came` says how that start ended. `waits`: of those that count as no try. */
  | {
      name: "restoring";
      ticket: string;
      startId: string;
      tries: number;
      waits?: number;
      came: Came | null;
    };

/** `passedAt`: it was refused then, for what passes by itself. */
export type Came = "restored" | { failed: string; passedAt?: number };

export type Needed = { tickets: string[]; checkpoints: string[] };

/** Of all that the plan has here. */
export function neededBy(seat: Seat | null): Needed {
  if (seat === null) return { tickets: [], checkpoints: [] };
  const { tickets, checkpoints } = freedBy(seat.phase);
  return { tickets, checkpoints: [...checkpoints, ...committedOf(seat)] };
}

export function ticketOf(seat: Seat | null): string | undefined {
  return seat === null || seat.phase.name === "over" ? undefined : seat.phase.ticket;
}

/** What the run has that is open here. */
export function freedBy(phase: SeatPhase): Needed {
  const artefact = phase.name === "prepared" ? phase.artefact : null;
  return {
    tickets: phase.name === "over" ? [] : [phase.ticket],
    checkpoints: artefact === null ? [] : [artefact],
  };
}

export function committedOf({ committed }: Seat): string[] {
  return committed === null ? [] : [committed.checkpoint];
}

/**
 * How the start has ended that a rollback began, noted in the commit in which the sandbox itself learns of it, so
 * that no crash and no later start can tell another tale.
 */
export function seatAfter(seat: Seat | null, was: SandboxState, is: SandboxState): Seat | null {
  if (seat === null || was === is || seat.phase.name !== "restoring") return seat;
  const { phase } = seat;
  if (!isOf(phase.startId, was) || isOf(phase.startId, is)) return seat;
  return { ...seat, phase: { ...phase, came: cameOf(is) } };
}

function cameOf(is: SandboxState): Came {
  if (is.name === "running") return "restored";
  const failed = "reason" in is ? is.reason : is.name;
  return is.name === "failed" && is.passes === true ? { failed, passedAt: is.since } : { failed };
}

function isOf(startId: string, state: SandboxState): boolean {
  return state.name === "starting" && state.start.startId === startId;
}
