/**
 * Owns what a plan asks of others: of its members' objects, and of the Directory, which makes new ones and gives names.
 * Calls go one way: nobody of these ever asks a plan. Each is harmless when repeated, and names its run.
 */
import type { Verdict } from "../../core/plan/pending.ts";
import type { Ended, Vote } from "../../core/plan/record.ts";
import type { NewSandbox } from "../sandbox/lifecycle/lifecycle.ts";
import type { Answer } from "../shared/result.ts";

/**
 * Which plan asks, and for which of its runs: a lower number than one that was heard is refused. So it is with `move`,
 * the number of a change of members.
 */
export type Asking = { tenant: string; plan: string; run: number };

export interface MemberPort {
  /** Also one that was forgotten since. */
  isDestroyed(): Promise<boolean>;
  /** It is this plan's from now on, or another's already. Steps of runs up to this number are over for it. */
  join(asking: Asking, move: number): Promise<Answer<null>>;
  /** It is free, or was; also when it is gone. */
  leave(asking: Asking, move: number): Promise<Answer<null>>;
  /** Its lease is the run's, and stays so without an end until `finish`; or it was not let go in time. */
  hold(asking: Asking, waitMs: number): Promise<Answer<null>>;
  /** Of a commit: the tree saved and compared. Of a rollback: whether there is one to go back to. */
  prepare(asking: Asking, kind: "commit" | "rollback"): Promise<Answer<Vote>>;
  /** Does what was decided, and lets others in again. `again`: it is not done yet; ask once more. */
  finish(asking: Asking, verdict: Verdict): Promise<Answer<Ended | "again">>;
  /** Who has its lease, or waits for it; null: nobody, so that it could be ended. */
  holder(asking: Asking): Promise<Answer<{ name: string | undefined } | null>>;
  /** Ends it for good, whoever holds its lease. */
  end(reason: string): Promise<unknown>;
  /** The same, refused while somebody has its lease or waits for it. */
  endUnheld(asking: Asking): Promise<Answer<unknown>>;
}

export interface MakerPort {
  /** Makes it, or finds it made by this same call; answers when its object has it. */
  make(call: NewSandbox): Promise<Answer<null>>;
  /** Gives the name back that was given at that time, and none that was given later. */
  forgetPlan(name: string, createdAt: number): Promise<Answer<null>>;
}

export type Ports = {
  memberOf: (sandbox: string) => MemberPort;
  directoryOf: (tenant: string) => MakerPort;
};
