/**
 * HTTP handlers of the verbs on plans. A run that continues after its response is a 202.
 */
import type { Context } from "hono";
import { idempotencyHeader } from "../../protocol/fields/idempotency.ts";
import type { Commit } from "../../protocol/plan.ts";
import { readBody } from "../http/body.ts";
import type { ApiContext, ApiEnv, Handler } from "../http/context.ts";
import { idempotencyKey } from "../http/headers.ts";
import { unparsedSchema } from "./create.ts";
import { listPlans, Plans } from "./plans.ts";

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

export const commit: Handler = async (c) => {
  const plans = plansOf(c);
  const key = idempotencyKey(c.req.header(idempotencyHeader));
  return runResponse(c, await plans.commit(await readBody(c.req.raw, unparsedSchema), key));
};

export const rollback: Handler = async (c) => {
  const plans = plansOf(c);
  const key = idempotencyKey(c.req.header(idempotencyHeader));
  return runResponse(c, await plans.rollback(await readBody(c.req.raw, unparsedSchema), key));
};

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
