/**
 * Owns the verbs of one plan, as methods for other Workers.
 * Does not own the work: REST and RPC share plans.ts and the objects.
 */
import { RpcTarget } from "cloudflare:workers";
import type { CommitInput, MemberInput, RollbackInput } from "../../protocol/plan.ts";
import type { MemberEnd, PlanApi, PlanEnd } from "../../protocol/plan-api.ts";
import type { planRoutes } from "../../protocol/verbs/plan.ts";
import { idempotencyKey } from "../http/query.ts";
import type { Plans } from "../special/plans.ts";

type PlanRoute = Exclude<keyof typeof planRoutes, "listPlans">;
type Keyed = { idempotencyKey?: string };

export class PlanTarget extends RpcTarget implements PlanApi {
  readonly #plans: (route: PlanRoute) => Plans;

  /** Made anew by each verb, which says what it is: a bad name and a lacking right are told by the call. */
  constructor(plans: (route: PlanRoute) => Plans) {
    super();
    this.#plans = plans;
  }

  async put() {
    return (await this.#plans("putPlan").put()).plan;
  }

  async get() {
    return this.#plans("getPlan").get();
  }

  async remove(options: PlanEnd = {}) {
    return this.#plans("removePlan").remove(options);
  }

  async putMember(key: string, call: MemberInput) {
    return (await this.#plans("putMember").putMember(key, call)).member;
  }

  async removeMember(key: string, options: MemberEnd = {}) {
    return this.#plans("removeMember").removeMember(key, options);
  }

  async commit(call: CommitInput = {}, { idempotencyKey: key }: Keyed = {}) {
    return this.#plans("commitPlan").commit(call, idempotencyKey(key));
  }

  async rollback(call: RollbackInput = {}, { idempotencyKey: key }: Keyed = {}) {
    return this.#plans("rollbackPlan").rollback(call, idempotencyKey(key));
  }

  async commits(query: { limit?: number; cursor?: string } = {}) {
    return this.#plans("listCommits").commits(query);
  }

  async commitOf(n: number, query: { waitMs?: number } = {}) {
    return this.#plans("getCommit").commitOf(n, query);
  }
}
