/** The verbs of one plan as RPC methods. */
import { RpcTarget } from "cloudflare:workers";
import type { MemberEnd, PlanApi, PlanEnd } from "../../protocol/api.ts";
import type { CommitInput, MemberInput, RollbackInput } from "../../protocol/plan.ts";
import type { VerbName } from "../../protocol/verbs.ts";
import { idempotencyKey } from "../http/headers.ts";
import type { Plans } from "./plans.ts";

type RunOptions = { idempotencyKey?: string };

export class PlanTarget extends RpcTarget implements PlanApi {
  readonly #plans: (name: VerbName) => Plans;

  /** `plans` runs for each call, so that the call itself fails for a missing right or an invalid name. */
  constructor(plans: (name: VerbName) => Plans) {
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

  async commit(call: CommitInput = {}, options: RunOptions = {}) {
    return this.#plans("commitPlan").commit(call, idempotencyKey(options.idempotencyKey));
  }

  async rollback(call: RollbackInput = {}, options: RunOptions = {}) {
    return this.#plans("rollbackPlan").rollback(call, idempotencyKey(options.idempotencyKey));
  }

  async commits(query: { limit?: number; cursor?: string } = {}) {
    return this.#plans("listCommits").commits(query);
  }

  async commitOf(n: number, query: { waitMs?: number } = {}) {
    return this.#plans("getCommit").commitOf(n, query);
  }
}
