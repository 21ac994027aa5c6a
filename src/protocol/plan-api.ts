/**
 * Owns the one interface of a plan for those who call it from code.
 * Does not own the rest of that interface (api.ts), nor how a call travels.
 */
import type {
  Commit,
  CommitInput,
  CommitsPage,
  Member,
  MemberInput,
  Plan,
  RollbackInput,
} from "./plan.ts";

type RunOptions = {
  /** With a key a repeated call is the same run. */
  idempotencyKey?: string;
};

export type PlanEnd = { sandboxes?: "keep" | "destroy"; force?: boolean };
export type MemberEnd = { sandbox?: "keep" | "destroy"; force?: boolean };

export interface PlanApi {
  /** Makes it, or finds it made. */
  put(): Promise<Plan>;
  get(): Promise<Plan>;
  /** What is destroyed must be held by nobody, unless it is forced. */
  remove(options?: PlanEnd): Promise<Plan>;
  putMember(key: string, call: MemberInput): Promise<Member>;
  removeMember(key: string, options?: MemberEnd): Promise<Member>;
  /** One that is still `pending` goes on by itself: `commitOf` waits for its end. */
  commit(call?: CommitInput, options?: RunOptions): Promise<Commit>;
  rollback(call?: RollbackInput, options?: RunOptions): Promise<Commit>;
  commits(query?: { limit?: number; cursor?: string }): Promise<CommitsPage>;
  commitOf(n: number, query?: { waitMs?: number }): Promise<Commit>;
}
