/**
 * The state of the model of plans: one plan, its members, their leases and files, and every request and response that was
 * ever sent: each may be lost, late, or repeated. The decisions are the real ones.
 * See moves.ts for what can happen.
 */

import type { Participant } from "../../../src/core/plan/participant/participant.ts";
import type { ParticipantDecision } from "../../../src/core/plan/pending.ts";
import type { PartResult, PlanRecord, Vote } from "../../../src/core/plan/record.ts";

export type Request =
  | { type: "hold"; run: number; member: string }
  | { type: "prepare"; run: number; member: string; kind: "commit" | "rollback" }
  | { type: "finish"; run: number; member: string; decision: ParticipantDecision };

export type Response =
  | { type: "hold"; run: number; member: string; held: boolean }
  | { type: "prepare"; run: number; member: string; vote: Vote }
  | { type: "finish"; run: number; member: string; ended: PartResult };

export type MemberWorld = {
  participant: Participant | null;
  /** The ticket of the lease's holder; a client's is `client`. */
  lease: string | null;
  /** The lease of the present run was broken. */
  wasBroken: boolean;
  /** The version of its files. */
  tree: number;
  /** The saved version of the files, by checkpoint. */
  saved: Record<string, number>;
};

export type World = {
  plan: PlanRecord;
  members: Record<string, MemberWorld>;
  requests: readonly Request[];
  responses: readonly Response[];
  /** The result of each run at each member, as the member reported it: `run member` → outcome. */
  outcomes: Record<string, PartResult["outcome"]>;
};

export function firstWorld(names: readonly string[]): World {
  const members = Object.fromEntries(
    names.map((name): [string, MemberWorld] => [
      name,
      {
        participant: { plan: "p", run: 0, phase: { name: "over" }, committed: null, last: null },
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
    requests: [],
    responses: [],
    outcomes: {},
  };
}

/** Drops responses that can have no effect any more: states that differ only in those are the same. */
export function normal(world: World): World {
  const { run } = world.plan;
  const responses = world.responses.filter(({ type, run: n, member, ...rest }) => {
    if (run === null || run.n !== n) return false;
    const part = run.parts.find(({ sandbox }) => sandbox === member);
    if (type === "finish") return part?.ended === null;
    if (run.decision !== null || part === undefined) return false;
    const isHeld = "held" in rest && rest.held;
    return part.vote === null && !(isHeld && part.held);
  });
  return responses.length === world.responses.length ? world : { ...world, responses };
}

export function keyOf(world: World): string {
  return JSON.stringify(world);
}
