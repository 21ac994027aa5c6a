/** The rows of a plan participant: its plan, and the newest membership change that each plan has sent. */
import type {
  Participant,
  ParticipantPhase,
  RestoreResult,
} from "../../../core/plan/participant/participant.ts";
import type { Vote } from "../../../core/plan/record.ts";
import { limits } from "../../../protocol/limits.ts";
import { replaceInto } from "../../shared/columns.ts";
import type { Host } from "../host.ts";

type ParticipantRow = {
  plan: string;
  run: number;
  phase: string;
  committed: string | null;
  last: string | null;
};

export function loadParticipant(host: Host): Participant | null {
  const row = host.sql<ParticipantRow>("SELECT plan, run, phase, committed, last FROM seat")[0];
  if (row === undefined) return null;
  const { plan, run, phase, committed, last } = row;
  return {
    plan,
    run,
    phase: fromStoredPhase(JSON.parse(phase)),
    committed: committed === null ? null : JSON.parse(committed),
    last: last === null ? null : JSON.parse(last),
  };
}

/** Phases with the property names that their rows have. */
type StoredPhase =
  | Exclude<ParticipantPhase, { name: "prepared" | "restoring" }>
  | { name: "prepared"; ticket: string; vote: Vote; artefact: string | null }
  | {
      name: "restoring";
      ticket: string;
      startId: string;
      tries: number;
      waits?: number;
      came: RestoreResult | null;
    };

function fromStoredPhase(phase: StoredPhase): ParticipantPhase {
  if (phase.name === "prepared") {
    const { artefact: preparedCheckpoint, ...rest } = phase;
    return { ...rest, preparedCheckpoint };
  }
  if (phase.name !== "restoring") return phase;
  const { waits, came: result, ...rest } = phase;
  return { ...rest, result, ...(waits === undefined ? {} : { deferrals: waits }) };
}

function toStoredPhase(phase: ParticipantPhase): StoredPhase {
  if (phase.name === "prepared") {
    const { preparedCheckpoint: artefact, ...rest } = phase;
    return { ...rest, artefact };
  }
  if (phase.name !== "restoring") return phase;
  const { deferrals, result: came, ...rest } = phase;
  return { ...rest, came, ...(deferrals === undefined ? {} : { waits: deferrals }) };
}

export function saveParticipant(host: Host, participant: Participant | null): void {
  if (participant === null) {
    host.sql("DELETE FROM seat");
    return;
  }
  const { plan, run, committed, last } = participant;
  replaceInto(host, "seat", {
    ...{ one: 1, plan, run },
    phase: JSON.stringify(toStoredPhase(participant.phase)),
    committed: committed === null ? null : JSON.stringify(committed),
    last: last === null ? null : JSON.stringify(last),
  });
}

/** 0 if the plan has sent none. */
export function lastMove(host: Host, plan: string): number {
  return host.sql<{ move: number }>("SELECT move FROM heard WHERE plan = ?", plan)[0]?.move ?? 0;
}

export function saveMove(host: Host, plan: string, move: number): void {
  if (lastMove(host, plan) === move) return;
  host.sql("INSERT OR REPLACE INTO heard (plan, move) VALUES (?, ?)", plan, move);
  host.sql(
    "DELETE FROM heard WHERE rowid <= (SELECT max(rowid) FROM heard) - ?",
    limits.formerPlansMax,
  );
}
