/**
 * Owns what a plan wants asked of others next, and when it must be looked at again. A fresh wake asks anew: each
 * question is harmless when repeated.
 */
import { type Deadline, earliest } from "../deadline.ts";
import type { Joining, Part, PlanRecord, Run } from "./record.ts";

export type Verdict = "commit" | "abort" | "roll_back";

export type Ask =
  /** To let nobody else in, and the run in. */
  | { type: "hold"; sandbox: string; by: number }
  /** To do all that is slow or may fail. */
  | { type: "prepare"; sandbox: string }
  /** To do what was decided, which cannot be refused. */
  | { type: "finish"; sandbox: string; verdict: Verdict };

/** What is asked beside runs. */
export type MoveAsk =
  /** To be the plan's; made first, if need be. */
  | { type: "join"; sandbox: string; joining: Joining }
  /** To be the plan's no more, and then to end. */
  | { type: "leave"; sandbox: string; move: number }
  | { type: "end"; sandbox: string; force: boolean }
  /** The Directory, to give the name to others. */
  | { type: "unregister" };

/** In the order in which they are to be asked; how many at once is the asker's. */
export function pending({ run }: PlanRecord): Ask[] {
  if (run === null) return [];
  const { decision, parts } = run;
  if (decision !== null) {
    return parts
      .filter(({ ended }) => ended === null)
      .map((part) => ({ type: "finish", sandbox: part.sandbox, verdict: verdict(run, part) }));
  }
  // Strictly one after the other: who waits for one holds only those that come before it.
  const next = parts.find(({ held, vote }) => !held && vote === null);
  if (next !== undefined) return [{ type: "hold", sandbox: next.sandbox, by: run.holdBy }];
  return parts
    .filter(({ vote }) => vote === null)
    .map(({ sandbox }) => ({ type: "prepare", sandbox }));
}

export function pendingMoves({ joining, leaving, life }: PlanRecord): MoveAsk[] {
  const moves: MoveAsk[] = [
    ...joining.map((one): MoveAsk => ({ type: "join", sandbox: one.sandbox, joining: one })),
    ...leaving.map(
      ({ phase, sandbox, move, fate }): MoveAsk =>
        phase === "leave"
          ? { type: phase, sandbox, move }
          : { type: phase, sandbox, force: fate === "force" },
    ),
  ];
  // Not before all have heard: whoever sees the name gone finds its members free.
  const isFree = leaving.every(({ phase }) => phase !== "leave");
  return life === "removing" && isFree ? [...moves, { type: "unregister" }] : moves;
}

export function verdict({ kind, decision }: Run, { vote }: Part): Verdict {
  if (decision?.go !== true || vote === null || "no" in vote) return "abort";
  return kind === "commit" ? "commit" : "roll_back";
}

/** Whether anybody has to be asked anything. */
export function isUnderWay({ run, joining, leaving, life }: PlanRecord): boolean {
  return run !== null || joining.length + leaving.length > 0 || life === "removing";
}

/** `lookAt`: when those who have not answered are asked again. */
export function planDeadline(plan: PlanRecord, lookAt: number): Deadline | undefined {
  const { run } = plan;
  const isDeciding = run !== null && run.decision === null;
  return earliest([
    isDeciding ? { at: run.until, why: "the run must be decided" } : undefined,
    isUnderWay(plan) ? { at: lookAt, why: "is what was asked still under way" } : undefined,
  ]);
}
