/**
 * Owns what a run wants asked of its members next, and when it must be looked at again. A fresh wake asks anew:
 * each question is harmless when repeated.
 */
import { type Deadline, earliest } from "../deadline.ts";
import type { Part, PlanRecord, Run } from "./record.ts";

export type Verdict = "commit" | "abort" | "roll_back";

export type Ask =
  /** To let nobody else in, and the run in. */
  | { type: "hold"; sandbox: string; by: number }
  /** To do all that is slow or may fail. */
  | { type: "prepare"; sandbox: string }
  /** To do what was decided, which cannot be refused. */
  | { type: "finish"; sandbox: string; verdict: Verdict };

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

export function verdict({ kind, decision }: Run, { vote }: Part): Verdict {
  if (decision?.go !== true || vote === null || "no" in vote) return "abort";
  return kind === "commit" ? "commit" : "roll_back";
}

/** `lookAt`: when those who have not answered are asked again. */
export function planDeadline(plan: PlanRecord, lookAt: number): Deadline | undefined {
  const { run, joining, leaving } = plan;
  const all: Deadline[] = [];
  if (run !== null) {
    if (run.decision === null) all.push({ at: run.until, why: "the run must be decided" });
    all.push({ at: lookAt, why: "is the run still under way" });
  }
  if (joining.length + leaving.length > 0) {
    all.push({ at: lookAt, why: "is the change of members still under way" });
  }
  return earliest(all);
}
