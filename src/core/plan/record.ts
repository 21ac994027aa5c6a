/**
 * Owns the facts that an object keeps of its plan: members, who is on the way in or out, and the one run at a time.
 * Does not own the moves (membership.ts, run.ts). All of it is rows.
 */
import type { Changes } from "../../protocol/changes.ts";
import type { CommitMode, Failure, MemberOutcome } from "../../protocol/plan.ts";

export type Member = {
  key: string;
  sandbox: string;
  addedAt: number;
  /** Of the last commit that it was part of. */
  committed: number | null;
};

/** Decided on; its sandbox is told until it has heard. */
export type Joining = {
  key: string;
  sandbox: string;
  addedAt: number;
  /** It is made first, by the Directory, which knows this call again. */
  makes: boolean;
  /** Whose place it takes, once it is in. */
  replaces: string | null;
  /** Its number among the changes of members: a sandbox that has heard a later one takes it no more. */
  move: number;
};

/** Of a sandbox that is taken out: `destroy` ends it unless somebody holds its lease, `force` whoever does. */
export type Fate = "keep" | "destroy" | "force";

/** No member any more; its sandbox is told until it has heard, and then perhaps ended. */
export type Leaving = {
  sandbox: string;
  phase: "leave" | "end";
  fate: Fate;
  move: number;
};

/** What a member says when it was asked to prepare. Whoever says yes can be committed whatever happens then. */
export type Vote =
  | { yes: { checkpoint: string | null; changes: Changes | null } }
  | { no: Failure };

export type Ended = { outcome: Exclude<MemberOutcome, "pending">; error?: Failure };

export type Part = {
  key: string;
  sandbox: string;
  /** Its lease is the run's. */
  held: boolean;
  vote: Vote | null;
  /** After the decision: it has done its part, and lets others in again. */
  ended: Ended | null;
};

export type Run = {
  n: number;
  kind: "commit" | "rollback";
  mode: CommitMode;
  allowEmpty: boolean;
  startedAt: number;
  /** By then all members must have let the run in. */
  holdBy: number;
  /** By then it must be decided. */
  until: number;
  decision: { go: boolean; at: number; error?: Failure } | null;
  endedAt: number | null;
  /** In order of the sandboxes' ids: two runs that share one cannot wait for each other. */
  parts: readonly Part[];
};

export type PlanRecord = {
  name: string;
  tenant: string;
  /** When its name was given. A later time is another plan of the same name. */
  createdAt: number;
  /** `removing`: its members are told, and then its name is given back. */
  life: "here" | "removing" | "gone";
  /** The number of the newest run. It outlives the plan: another one of the same name goes on from it. */
  newest: number;
  /** The number of the newest change of members; it outlives the plan too. */
  moves: number;
  members: readonly Member[];
  joining: readonly Joining[];
  leaving: readonly Leaving[];
  /** The one that is not over. From its first row to its last, nobody joins or leaves. */
  run: Run | null;
  /** The newest that is. */
  last: Run | null;
};
