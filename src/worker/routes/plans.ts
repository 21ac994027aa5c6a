/**
 * Owns the routes of plans. What goes on after its call has been answered is a 202.
 */
import type { Context } from "hono";
import { idempotencyHeader } from "../../protocol/fields/idempotency.ts";
import type { Commit } from "../../protocol/plan.ts";
import type { Door, Handler } from "../app.ts";
import { readBody } from "../http/body.ts";
import { idempotencyKey } from "../http/query.ts";
import { writtenCallSchema } from "../special/create.ts";
import { listPlans, Plans } from "../special/plans.ts";

export const list: Handler = async (c) =>
  c.json(await listPlans(c.env, c.get("caller"), c.req.query()));

export const put: Handler = async (c) => {
  const { plan, made } = await plansOf(c).put(await readBody(c.req.raw, writtenCallSchema));
  return c.json(plan, made ? 201 : 200);
};

export const get: Handler = async (c) => c.json(await plansOf(c).get());

export const remove: Handler = async (c) => c.json(await plansOf(c).remove(c.req.query()));

export const putMember: Handler = async (c) => {
  const plans = plansOf(c);
  const written = await readBody(c.req.raw, writtenCallSchema);
  const { member, made } = await plans.putMember(param(c, "key"), written);
  return c.json(member, made ? 201 : 200);
};

export const removeMember: Handler = async (c) =>
  c.json(await plansOf(c).removeMember(param(c, "key"), c.req.query()));

export const commit: Handler = async (c) => {
  const plans = plansOf(c);
  const key = idempotencyKey(c.req.header(idempotencyHeader));
  return ran(c, await plans.commit(await readBody(c.req.raw, writtenCallSchema), key));
};

export const rollback: Handler = async (c) => {
  const plans = plansOf(c);
  const key = idempotencyKey(c.req.header(idempotencyHeader));
  return ran(c, await plans.rollback(await readBody(c.req.raw, writtenCallSchema), key));
};

export const listCommits: Handler = async (c) => c.json(await plansOf(c).commits(c.req.query()));

export const getCommit: Handler = async (c) =>
  ran(c, await plansOf(c).commitOf(param(c, "n"), c.req.query()));

function ran(c: Context<Door>, commit: Commit): Response {
  return c.json(commit, commit.outcome === "pending" ? 202 : 200);
}

function plansOf(c: Context<Door, "/:id">): Plans {
  return new Plans(c.env, c.get("caller"), param(c, "plan"));
}

function param(c: Context<Door, "/:id">, name: "plan" | "key" | "n"): string {
  return c.req.param(name as never) ?? "";
}
