/**
 * Owns the world of the model of plans: one plan, its members, their leases and trees, and every question and answer
 * that was ever sent: each may be lost, come late, or come again.
 * Does not own the decisions: those are the real ones.
 */

import type { Participant } from "../../../src/core/plan/participant/participant.ts";
import type { ParticipantDecision } from "../../../src/core/plan/pending.ts";
import type { PartResult, PlanRecord, Vote } from "../../../src/core/plan/record.ts";

export type Question =
  | { ask: "hold"; run: number; member: string }
  | { ask: "prepare"; run: number; member: string; kind: "commit" | "rollback" }
  | { ask: "finish"; run: number; member: string; decision: ParticipantDecision };

export type Answered =
  | { to: "hold"; run: number; member: string; held: boolean }
  | { to: "prepare"; run: number; member: string; vote: Vote }
  | { to: "finish"; run: number; member: string; ended: PartResult };

export type MemberWorld = {
  seat: Participant | null;
  /** The ticket of whoever has its lease; a client's is `client`. */
  lease: string | null;
  /** Somebody with the right to it took the lease of the present run away. */
  wasBroken: boolean;
  /** The version of its files. */
  tree: number;
  /** Saved trees by checkpoint. */
  saved: Record<string, number>;
};

export type World = {
  plan: PlanRecord;
  members: Record<string, MemberWorld>;
  questions: readonly Question[];
  answers: readonly Answered[];
  /** What each run did to each member, as the member said it: `run member` → outcome. */
  outcomes: Record<string, PartResult["outcome"]>;
};

export function firstWorld(names: readonly string[]): World {
  const members = Object.fromEntries(
    names.map((name): [string, MemberWorld] => [
      name,
      {
        seat: { plan: "p", run: 0, phase: { name: "over" }, committed: null, last: null },
        lease: null,
        wasBroken: false,
        tree: 1,
        saved: {},
      },
    ]),
  );
  return {
    plan: {
      name: "p",
      tenant: "t",
      createdAt: 0,
      status: "here",
      newestRun: 0,
      membershipRevision: 0,
      members: names.map((name) => ({ key: name, sandbox: name, addedAt: 0, committed: null })),
      joining: [],
      leaving: [],
      run: null,
      lastRun: null,
    },
    members,
    questions: [],
    answers: [],
    outcomes: {},
  };
}

/** Without answers that can never say anything again: what differs only in those is one world. */
export function normal(world: World): World {
  const { run } = world.plan;
  const answers = world.answers.filter(({ to, run: n, member, ...said }) => {
    if (run === null || run.n !== n) return false;
    const part = run.parts.find(({ sandbox }) => sandbox === member);
    if (to === "finish") return part?.ended === null;
    if (run.decision !== null || part === undefined) return false;
    const isHeld = "held" in said && said.held;
    return part.vote === null && !(isHeld && part.held);
  });
  return answers.length === world.answers.length ? world : { ...world, answers };
}

export function keyOf(world: World): string {
  return JSON.stringify(world);
}
