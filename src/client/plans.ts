/** Plans: several sandboxes that are committed or rolled back together. */
import type { MemberEnd, PlanEnd } from "../protocol/api.ts";
import type {
  Commit,
  CommitInput,
  CommitsPage,
  Member,
  MemberInput,
  Plan as PlanInfo,
  PlansPage,
  RollbackInput,
} from "../protocol/plan.ts";
import type { BerthCalls, PlanCalls } from "./calls.ts";
import type { CallOptions } from "./http/request.ts";
import { type Page, toPage } from "./page.ts";

/** A handle of a plan whose facts are known. */
export type KnownPlan = Plan & { readonly info: PlanInfo };

/** Options of lists that come in pages. */
export type PageOptions = CallOptions & {
  /** The most entries of the page. Default: 100, of commits 20. */
  limit?: number | undefined;
  /** The `nextCursor` of the page before. Default: the first page. */
  cursor?: string | undefined;
};

/** Options of `plan.commit` and `plan.rollback`. */
export type RunOptions = CallOptions & {
  /** A repeated call with the same key returns the same run. Default: none, so the call is not repeated. */
  idempotencyKey?: string | undefined;
};

/** The plans of one key. */
export class Plans {
  readonly #calls: BerthCalls;

  /** @internal */
  constructor(calls: BerthCalls) {
    this.#calls = calls;
  }

  /**
   * Creates the plan of this name, or returns it if it exists.
   *
   * @example
   * ```ts
   * const plan = await berth.plans.create("release-42");
   * await plan.setMember("frontend", { sandboxId: sandbox.id });
   * const { outcome } = await plan.commit();
   * ```
   */
  async create(name: string, options: CallOptions = {}): Promise<KnownPlan> {
    return this.#known(await this.#calls.plan(name).put(options));
  }

  /** A plan by its name. */
  async get(name: string, options: CallOptions = {}): Promise<KnownPlan> {
    return this.#known(await this.#calls.plan(name).get(options));
  }

  /** One page of plans, by name. */
  async list(options: PageOptions = {}): Promise<Page<PlansPage["plans"][number]>> {
    const { plans, nextCursor } = await this.#calls.plans(options as object);
    return toPage(plans, { nextCursor });
  }

  #known(info: PlanInfo): KnownPlan {
    return new Plan(this.#calls.plan(info.name), info.name, info) as KnownPlan;
  }
}

/** One plan. `berth.plans.create`, `berth.plans.get` and `berth.plan` return it. */
export class Plan {
  /** The name. */
  readonly name: string;
  readonly #calls: PlanCalls;
  #info: PlanInfo | undefined;

  /** @internal */
  constructor(calls: PlanCalls, name: string, info?: PlanInfo) {
    this.name = name;
    this.#calls = calls;
    this.#info = info;
  }

  /** What Berth said last about the plan; undefined before the first answer. `get` asks again. */
  get info(): PlanInfo | undefined {
    return this.#info;
  }

  /** The plan with its members and its running commit. */
  async get(options: CallOptions = {}): Promise<PlanInfo> {
    this.#info = await this.#calls.get(options);
    return this.#info;
  }

  /** Deletes the plan. Its sandboxes are kept unless `sandboxes` is `destroy`; `force` destroys also leased ones. */
  delete(options: CallOptions & PlanEnd = {}): Promise<PlanInfo> {
    return this.#calls.remove(options);
  }

  /** Adds a sandbox, or creates one, as the member of this key, or replaces it. A repeated call finds it. */
  setMember(key: string, member: MemberInput, options: CallOptions = {}): Promise<Member> {
    const put = this.#calls.putMember as (...args: unknown[]) => Promise<Member>;
    return put(key, member, options);
  }

  /** Removes a member. Its sandbox is kept unless `sandbox` is `destroy`; `force` destroys also a leased one. */
  deleteMember(key: string, options: CallOptions & MemberEnd = {}): Promise<Member> {
    return this.#calls.removeMember(key, options);
  }

  /** Saves all members together. A run that is returned as `pending` continues: `getCommit` waits for its end. */
  commit(input: CommitInput = {}, options: RunOptions = {}): Promise<Commit> {
    return this.#calls.commit(input, options as object);
  }

  /** Restores the files of the last commit in all members. */
  rollback(input: RollbackInput = {}, options: RunOptions = {}): Promise<Commit> {
    return this.#calls.rollback(input, options as object);
  }

  /** One page of commits and rollbacks, newest first. */
  async listCommits(options: PageOptions = {}): Promise<Page<CommitsPage["commits"][number]>> {
    const { commits, nextCursor } = await this.#calls.commits(options as object);
    return toPage(commits, { nextCursor });
  }

  /** One commit or rollback by its number; waits up to `waitMs` (default 0) for its end. */
  getCommit(
    number: number,
    options: CallOptions & { waitMs?: number | undefined } = {},
  ): Promise<Commit> {
    return this.#calls.commitOf(number, options as object);
  }
}
