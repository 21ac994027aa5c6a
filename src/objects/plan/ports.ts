/** What a plan needs from other objects. Calls go from the plan to the others, and each is harmless when repeated. */
import type { ParticipantDecision } from "../../core/plan/pending.ts";
import type { PartResult, Vote } from "../../core/plan/record.ts";
import type { NewSandbox } from "../sandbox/lifecycle/lifecycle.ts";
import type { Result } from "../shared/result.ts";

/** The plan that calls, and the run for which it does; a run lower than one that the sandbox has seen is refused. */
export type PlanCaller = { tenant: string; plan: string; run: number };

export interface ParticipantPort {
  /** True also for a sandbox that its object has forgotten. */
  isDestroyed(): Promise<boolean>;
  /** Adds the sandbox to the plan, or refuses because it is in another one. Steps of runs up to this number are over. */
  join(caller: PlanCaller, membershipRevision: number): Promise<Result<null>>;
  /** Succeeds also if the sandbox was not in the plan or is destroyed. */
  leave(caller: PlanCaller, membershipRevision: number): Promise<Result<null>>;
  /** Acquires the lease for the run, pinned until `finish`; refuses if that takes longer than `waitMs`. */
  hold(caller: PlanCaller, waitMs: number): Promise<Result<null>>;
  /** Commit: saves a checkpoint and lists the changes. Rollback: checks that there is a checkpoint to return to. */
  prepare(caller: PlanCaller, kind: "commit" | "rollback"): Promise<Result<Vote>>;
  /** Carries the decision out and releases the lease. `again`: it is not done yet; call again. */
  finish(caller: PlanCaller, decision: ParticipantDecision): Promise<Result<PartResult | "again">>;
  /** Who holds the lease or is first in its queue; null if nobody does. */
  holder(caller: PlanCaller): Promise<Result<{ name: string | undefined } | null>>;
  /** Destroys the sandbox even if its lease is held. */
  end(reason: string): Promise<unknown>;
  /** Destroys the sandbox; refuses while somebody holds its lease or waits for it. */
  endUnheld(caller: PlanCaller): Promise<Result<unknown>>;
}

interface DirectoryPort {
  /** Creates the sandbox, or finds it created by this same call; returns when the sandbox's object has it. */
  make(call: NewSandbox): Promise<Result<null>>;
  /** Gives the name back, unless it was given again after `createdAt`. */
  forgetPlan(name: string, createdAt: number): Promise<Result<null>>;
}

export type PlanPorts = {
  participantOf: (sandbox: string) => ParticipantPort;
  directoryOf: (tenant: string) => DirectoryPort;
};
