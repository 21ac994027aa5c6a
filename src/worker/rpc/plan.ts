/**
 * Owns the verbs of one plan, as methods for other Workers.
 * Does not own the work: REST and RPC share plans.ts and the objects.
 */
import { RpcTarget } from "cloudflare:workers";
import type { CommitInput, MemberInput, RollbackInput } from "../../protocol/plan.ts";
import type { MemberEnd, PlanApi, PlanEnd } from "../../protocol/plan-api.ts";
import type { Plans } from "../plans.ts";
import { idempotencyKey } from "../query.ts";

type Keyed = { idempotencyKey?: string };

export class PlanTarget extends RpcTarget implements PlanApi {
  readonly #plans: () => Plans;

  /** Made anew by each verb: a bad name is told by the call, not by asking for the plan. */
  constructor(plans: () => Plans) {
    super();
    this.#plans = plans;
  }

  async put() {
    return (await this.#plans().put()).plan;
  }

  async get() {
    return this.#plans().get();
  }

  async remove(options: PlanEnd = {}) {
    return this.#plans().remove(options);
  }

  async putMember(key: string, call: MemberInput) {
    return (await this.#plans().putMember(key, call)).member;
  }

  async removeMember(key: string, options: MemberEnd = {}) {
    return this.#plans().removeMember(key, options);
  }

  async commit(call: CommitInput = {}, { idempotencyKey: key }: Keyed = {}) {
    return this.#plans().commit(call, idempotencyKey(key));
  }

  async rollback(call: RollbackInput = {}, { idempotencyKey: key }: Keyed = {}) {
    return this.#plans().rollback(call, idempotencyKey(key));
  }

  async commits(query: { limit?: number; cursor?: string } = {}) {
    return this.#plans().commits(query);
  }

  async commitOf(n: number, query: { waitMs?: number } = {}) {
    return this.#plans().commitOf(n, query);
  }
}
