/** Describes what a plan stores: its members, who is joining or leaving, and the one open run. */
import type { Changes } from "../../protocol/checkpoint.ts";
import type { CommitMode, Failure, MemberOutcome } from "../../protocol/plan.ts";

export type Member = {
  key: string;
  sandbox: string;
  addedAt: number;
  /** The number of the last commit that included it. */
  committed: number | null;
};

/** A member-to-be: the plan asks its sandbox until it agrees or refuses. */
export type Joining = {
  key: string;
  sandbox: string;
  addedAt: number;
  /** The Directory creates the sandbox first; a repeated call creates it only once. */
  createsSandbox: boolean;
  /** The sandbox whose membership ends when this one has joined. */
  replaces: string | null;
  /** The membership change that this belongs to; the sandbox refuses changes older than the newest it knows. */
  membershipRevision: number;
};

/** What happens to a removed member: `destroy` ends it unless its lease is held, `force` ends it in any case. */
export type Disposition = "keep" | "destroy" | "force";

/** A former member: the plan tells its sandbox until that confirms (`leave`), and then perhaps ends it (`end`). */
export type Leaving = {
  sandbox: string;
  phase: "leave" | "end";
  disposition: Disposition;
  membershipRevision: number;
};

/** The response to `prepare`. A participant that votes yes can commit, whatever happens afterwards. */
export type Vote =
  | { yes: { checkpoint: string | null; changes: Changes | null } }
  | { no: Failure };

/** How a run ended for one member. */
export type PartResult = { outcome: Exclude<MemberOutcome, "pending">; error?: Failure };

/** One member's part in a run. */
export type RunPart = {
  key: string;
  sandbox: string;
  /** The run has the member's lease. */
  held: boolean;
  vote: Vote | null;
  /** Set after the decision, when the member has carried it out and released the lease. */
  ended: PartResult | null;
};

/**
 * Two phases around one decision. While `decision` is null the run holds leases and collects votes, at most until `until`.
 * Once it is set, each member carries it out, however long that takes; then `endedAt` is set.
 */
export type Run = {
  n: number;
  kind: "commit" | "rollback";
  mode: CommitMode;
  allowEmpty: boolean;
  startedAt: number;
  /** All leases must be held by then. */
  holdBy: number;
  /** The run must be decided by then. */
  until: number;
  decision: { go: boolean; at: number; error?: Failure } | null;
  endedAt: number | null;
  /** Ordered by sandbox id, so that two runs that share sandboxes cannot wait for each other. */
  parts: readonly RunPart[];
};

export type PlanRecord = {
  name: string;
  tenant: string;
  /** When the name was given. A later time means another plan of the same name. */
  createdAt: number;
  /** `removing`: members are being released, and the name is given back after that. */
  status: "here" | "removing" | "gone";
  /** The number of the newest run. It remains after the plan is removed: a later plan of the same name continues from it. */
  newestRun: number;
  /** The number of the newest membership change; it remains, too. */
  membershipRevision: number;
  members: readonly Member[];
  joining: readonly Joining[];
  leaving: readonly Leaving[];
  /** The open run. Nobody joins or leaves until it has ended. */
  run: Run | null;
  /** The newest run that has ended. */
  lastRun: Run | null;
};
