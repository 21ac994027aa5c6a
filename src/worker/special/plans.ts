/**
 * Owns what a caller can ask of plans, whether it came by REST or by RPC: names and ids checked, the Directory asked
 * whether there is such a plan, its object addressed only then. Does not own HTTP, nor what the object decides.
 */
import { z } from "zod";
import { configOf, type Env } from "../../config.ts";
import type { PutMemberCall, PutMemberResult } from "../../objects/plan/members.ts";
import type { PlanObject } from "../../objects/plan/object.ts";
import type { Result } from "../../objects/shared/result.ts";
import { BerthError, unknownSandbox } from "../../protocol/errors.ts";
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
import { hashOf } from "../auth/call-hash.ts";
import { isGeneratedHere } from "../auth/ids.ts";
import { directoryObject, unwrap } from "../http/objects.ts";
import { invalidField, validate } from "../http/validate.ts";
import { newSandbox } from "./new-sandbox.ts";

type Named = Parameters<PlanObject["get"]>[0];
type Fate = Parameters<PlanObject["remove"]>[1];

/** A name that is given back while it is asked for is given anew; more often than this is a fault. */
const roundsMax = 4;

export async function listPlans(env: Env, caller: Caller, query: unknown): Promise<PlansPage> {
  const asked = validate(plansQuerySchema, query);
  return unwrap(await directoryObject(env, caller).plans(asked));
}

/** The plans of one caller by one name. */
export class Plans {
  readonly #env: Env;
  readonly #caller: Caller;
  readonly #name: string;

  constructor(env: Env, caller: Caller, name: string) {
    this.#env = env;
    this.#caller = caller;
    this.#name = named("plan", planNameSchema, name);
  }

  async put(call: unknown = {}): Promise<{ plan: Plan; made: boolean }> {
    validate(planCallSchema, call);
    for (let round = 0; round < roundsMax; round++) {
      const given = unwrap(await directoryObject(this.#env, this.#caller).putPlan(this.#name));
      const plan = unwrap(await this.#object().put(this.#named(given.createdAt)));
      if (plan !== "again") return { plan, made: given.made };
    }
    throw new BerthError("unavailable", "The plan is made and removed at the same time.");
  }

  async get(): Promise<Plan> {
    return this.#ask((plan, as) => plan.get(as));
  }

  async remove(query: unknown): Promise<Plan> {
    const { sandboxes, force } = validate(planEndQuerySchema, query);
    const fate = fateOf(sandboxes, force);
    return this.#ask((plan, as) => plan.remove(as, fate));
  }

  async putMember(said: string, written: unknown): Promise<PutMemberResult> {
    const key = named("key", memberKeySchema, said);
    const put = await this.#wanted(key, written);
    return this.#ask((plan, as) => plan.putMember(as, put));
  }

  async removeMember(said: string, query: unknown): Promise<Member> {
    const key = named("key", memberKeySchema, said);
    const { sandbox, force } = validate(memberEndQuerySchema, query);
    const fate = fateOf(sandbox, force);
    return this.#ask((plan, as) => plan.removeMember(as, key, fate));
  }

  async commit(written: unknown, key: string | undefined): Promise<Commit> {
    const call = validate(commitCallSchema, written);
    const run = { kind: "commit" as const, ...call };
    return this.#ask((plan, as) => plan.run(as, { ...run, key, hash: patientHash(run) }));
  }

  async rollback(written: unknown, key: string | undefined): Promise<Commit> {
    const call = validate(rollbackCallSchema, written);
    const run = { kind: "rollback" as const, mode: "atomic" as const, allowEmpty: false, ...call };
    return this.#ask((plan, as) => plan.run(as, { ...run, key, hash: patientHash(run) }));
  }

  async commits(query: unknown): Promise<CommitsPage> {
    const { limit, cursor } = validate(commitsQuerySchema, query);
    const before = cursor === undefined ? undefined : Number(cursor);
    return this.#ask((plan, as) => plan.commits(as, before, limit));
  }

  async commitOf(n: string | number, query: unknown): Promise<Commit> {
    if (!/^[1-9]\d{0,14}$/.test(String(n)))
      throw invalidField("n", "must be the number of a commit");
    const { waitMs } = validate(commitQuerySchema, query);
    return this.#ask((plan, as) => plan.commitOf(as, Number(n), waitMs));
  }

  async #wanted(key: string, written: unknown): Promise<PutMemberCall> {
    const body = validate(z.looseObject({}), written);
    if ("create" in body) {
      const { create } = validate(memberMakeSchema, body);
      const wanted = await newSandbox(this.#env, this.#caller, create, body.create as object);
      return { key, sandbox: wanted.make.spec.id, ...wanted };
    }
    const { sandboxId } = validate(memberAdoptSchema, body);
    if (!isGeneratedHere(sandboxId, configOf(this.#env).secret)) throw unknownSandbox();
    return { key, sandbox: sandboxId };
  }

  async #ask<T>(
    verb: (plan: DurableObjectStub<PlanObject>, as: Named) => Promise<Result<T>>,
  ): Promise<T> {
    const createdAt = await directoryObject(this.#env, this.#caller).plan(this.#name);
    if (createdAt === undefined) {
      throw new BerthError("not_found", "No such plan for this key.", {
        hint: "PUT /v1/plans/:plan makes one.",
      });
    }
    return unwrap(await verb(this.#object(), this.#named(createdAt)));
  }

  #named(createdAt: number): Named {
    return { tenant: this.#caller.tenant, name: this.#name, createdAt };
  }

  #object(): DurableObjectStub<PlanObject> {
    return this.#env.PLAN.getByName(`${this.#caller.tenant}/${this.#name}`);
  }
}

function fateOf(told: "keep" | "destroy", force: boolean | string): Fate {
  if (told === "keep") return told;
  return force === true || force === "true" || force === "1" ? "force" : told;
}

/** A call that waits longer is the same one. */
function patientHash<Call extends { waitMs: number }>({ waitMs: _waitMs, ...call }: Call): string {
  return hashOf(call);
}

function named(field: string, schema: z.ZodString, told: string): string {
  const name = schema.safeParse(told);
  if (name.success) return name.data;
  throw invalidField(field, name.error.issues[0]?.message ?? "is not valid");
}
