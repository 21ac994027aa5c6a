/** Serves the verbs on plans, over HTTP and RPC. The Directory is asked before the object of a plan is addressed. */
import type { Context } from "hono";
import { z } from "zod";
import { type Env, readConfig } from "../../config.ts";
import type { PutMemberCall, PutMemberResult } from "../../objects/plan/members.ts";
import type { PlanObject } from "../../objects/plan/object.ts";
import type { Result } from "../../objects/shared/result.ts";
import { BerthError, unknownSandbox } from "../../protocol/errors.ts";
import { idempotencyHeader } from "../../protocol/fields/id.ts";
import {
  type Commit,
  type CommitsPage,
  commitCallSchema,
  commitQuerySchema,
  commitsQuerySchema,
  type Member,
  memberAdoptSchema,
  memberEndQuerySchema,
  memberKeySchema,
  memberMakeSchema,
  type Plan,
  type PlansPage,
  planCallSchema,
  planEndQuerySchema,
  planNameSchema,
  plansQuerySchema,
  rollbackCallSchema,
} from "../../protocol/plan.ts";
import type { Caller } from "../../protocol/rights.ts";
import { isGeneratedHere } from "../auth/ids.ts";
import { readBody } from "../http/body.ts";
import type { ApiContext, ApiEnv, Handler } from "../http/context.ts";
import { hashOf, idempotencyKey } from "../http/headers.ts";
import { directoryObject, unwrap } from "../http/objects.ts";
import { invalidField, validate, validateField } from "../http/validate.ts";
import { unparsedSchema } from "./create.ts";
import { newSandbox } from "./new-sandbox.ts";

type PlanIdentity = Parameters<PlanObject["get"]>[0];
type Disposition = Parameters<PlanObject["remove"]>[1];
type RunCall = Parameters<PlanObject["run"]>[1];

/** A plan that is removed during the call gets a new record. Removals in each of these rounds are a fault. */
const roundsMax = 4;

export async function listPlans(env: Env, caller: Caller, query: unknown): Promise<PlansPage> {
  const checked = validate(plansQuerySchema, query);
  return unwrap(await directoryObject(env, caller).plans(checked));
}

/** The plan of one caller with one name. */
export class Plans {
  readonly #env: Env;
  readonly #caller: Caller;
  readonly #name: string;

  constructor(env: Env, caller: Caller, name: string) {
    this.#env = env;
    this.#caller = caller;
    this.#name = validateField("plan", planNameSchema, name);
  }

  async put(call: unknown = {}): Promise<{ plan: Plan; made: boolean }> {
    validate(planCallSchema, call);
    for (let round = 0; round < roundsMax; round++) {
      const given = unwrap(await directoryObject(this.#env, this.#caller).putPlan(this.#name));
      const plan = unwrap(await this.#object().put(this.#identity(given.createdAt)));
      if (plan !== "again") return { plan, made: given.made };
    }
    throw new BerthError("unavailable", "The plan is created and removed at the same time.");
  }

  async get(): Promise<Plan> {
    return this.#callPlan((plan, as) => plan.get(as));
  }

  async remove(query: unknown): Promise<Plan> {
    const { sandboxes, force } = validate(planEndQuerySchema, query);
    const disposition = dispositionOf(sandboxes, force);
    return this.#callPlan((plan, as) => plan.remove(as, disposition));
  }

  async putMember(said: string, written: unknown): Promise<PutMemberResult> {
    const key = validateField("key", memberKeySchema, said);
    const put = await this.#memberCall(key, written);
    return this.#callPlan((plan, as) => plan.putMember(as, put));
  }

  async removeMember(said: string, query: unknown): Promise<Member> {
    const key = validateField("key", memberKeySchema, said);
    const { sandbox, force } = validate(memberEndQuerySchema, query);
    const disposition = dispositionOf(sandbox, force);
    return this.#callPlan((plan, as) => plan.removeMember(as, key, disposition));
  }

  async commit(written: unknown, key: string | undefined): Promise<Commit> {
    return this.#run({ kind: "commit", ...validate(commitCallSchema, written) }, key);
  }

  async rollback(written: unknown, key: string | undefined): Promise<Commit> {
    const { waitMs } = validate(rollbackCallSchema, written);
    return this.#run({ kind: "rollback", mode: "atomic", allowEmpty: false, waitMs }, key);
  }

  async commits(query: unknown): Promise<CommitsPage> {
    const { limit, cursor } = validate(commitsQuerySchema, query);
    const before = cursor === undefined ? undefined : Number(cursor);
    return this.#callPlan((plan, as) => plan.commits(as, before, limit));
  }

  async commitOf(n: string | number, query: unknown): Promise<Commit> {
    if (!/^[1-9]\d{0,14}$/.test(String(n)))
      throw invalidField("n", "must be the number of a commit");
    const { waitMs } = validate(commitQuerySchema, query);
    return this.#callPlan((plan, as) => plan.commitOf(as, Number(n), waitMs));
  }

  #run(call: Omit<RunCall, "key" | "hash">, key: string | undefined): Promise<Commit> {
    // Calls that differ only in how long they wait are the same call.
    const { waitMs: _waitMs, ...sameCall } = call;
    const hash = hashOf(sameCall);
    return this.#callPlan((plan, as) => plan.run(as, { ...call, key, hash }));
  }

  async #memberCall(key: string, written: unknown): Promise<PutMemberCall> {
    const body = validate(z.looseObject({}), written);
    if ("create" in body) {
      const { create } = validate(memberMakeSchema, body);
      const wanted = await newSandbox(this.#env, this.#caller, create, body.create as object);
      return { key, sandbox: wanted.make.spec.id, ...wanted };
    }
    const { sandboxId } = validate(memberAdoptSchema, body);
    if (!isGeneratedHere(sandboxId, readConfig(this.#env).secret)) throw unknownSandbox();
    return { key, sandbox: sandboxId };
  }

  async #callPlan<T>(
    verb: (plan: DurableObjectStub<PlanObject>, as: PlanIdentity) => Promise<Result<T>>,
  ): Promise<T> {
    const createdAt = await directoryObject(this.#env, this.#caller).plan(this.#name);
    if (createdAt === undefined) {
      throw new BerthError("not_found", "Your key has no such plan.", {
        hint: "Create it with PUT /v1/plans/:plan.",
      });
    }
    return unwrap(await verb(this.#object(), this.#identity(createdAt)));
  }

  #identity(createdAt: number): PlanIdentity {
    return { tenant: this.#caller.tenant, name: this.#name, createdAt };
  }

  #object(): DurableObjectStub<PlanObject> {
    return this.#env.PLAN.getByName(`${this.#caller.tenant}/${this.#name}`);
  }
}

function dispositionOf(choice: "keep" | "destroy", force: boolean | string): Disposition {
  if (choice === "keep") return choice;
  return force === true || force === "true" || force === "1" ? "force" : choice;
}

export const list: Handler = async (c) =>
  c.json(await listPlans(c.env, c.get("caller"), c.req.query()));

export const put: Handler = async (c) => {
  const { plan, made } = await plansOf(c).put(await readBody(c.req.raw, unparsedSchema));
  return c.json(plan, made ? 201 : 200);
};

export const get: Handler = async (c) => c.json(await plansOf(c).get());

export const remove: Handler = async (c) => c.json(await plansOf(c).remove(c.req.query()));

export const putMember: Handler = async (c) => {
  const plans = plansOf(c);
  const body = await readBody(c.req.raw, unparsedSchema);
  const { member, made } = await plans.putMember(param(c, "key"), body);
  return c.json(member, made ? 201 : 200);
};

export const removeMember: Handler = async (c) =>
  c.json(await plansOf(c).removeMember(param(c, "key"), c.req.query()));

export const commit: Handler = (c) => startRun(c, "commit");

export const rollback: Handler = (c) => startRun(c, "rollback");

async function startRun(c: ApiContext, kind: "commit" | "rollback"): Promise<Response> {
  const plans = plansOf(c);
  const key = idempotencyKey(c.req.header(idempotencyHeader));
  return runResponse(c, await plans[kind](await readBody(c.req.raw, unparsedSchema), key));
}

export const listCommits: Handler = async (c) => c.json(await plansOf(c).commits(c.req.query()));

export const getCommit: Handler = async (c) =>
  runResponse(c, await plansOf(c).commitOf(param(c, "n"), c.req.query()));

function runResponse(c: Context<ApiEnv>, commit: Commit): Response {
  return c.json(commit, commit.outcome === "pending" ? 202 : 200);
}

function plansOf(c: ApiContext): Plans {
  return new Plans(c.env, c.get("caller"), param(c, "plan"));
}

function param(c: ApiContext, name: "plan" | "key" | "n"): string {
  return c.req.param(name as never) ?? "";
}
