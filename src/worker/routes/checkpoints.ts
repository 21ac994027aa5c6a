/**
 * Owns the routes of checkpoints.
 */
import type { Context } from "hono";
import { checkpointCallSchema } from "../../protocol/checkpoint.ts";
import type { Door, Handler } from "../app.ts";
import { readBody } from "../http/body.ts";
import { objectOf, told } from "../http/operations.ts";
import { gatedCaller } from "../http/query.ts";
import { checkpointIn } from "../special/checkpoints.ts";

export const make: Handler = async (c) => {
  const object = objectOf(c.env, c.req.param("id"));
  const gated = gatedCaller(c);
  const call = await readBody(c.req.raw, checkpointCallSchema);
  return c.json(told(await object.makeCheckpoint(c.get("caller"), gated, call)), 201);
};

export const list: Handler = async (c) =>
  c.json(told(await objectOf(c.env, c.req.param("id")).checkpoints(c.get("caller"))));

export const get: Handler = async (c) => {
  const object = objectOf(c.env, c.req.param("id"));
  return c.json(told(await object.checkpoint(c.get("caller"), named(c))));
};

export const remove: Handler = async (c) => {
  const object = objectOf(c.env, c.req.param("id"));
  return c.json(told(await object.removeCheckpoint(c.get("caller"), named(c))));
};

export const restore: Handler = async (c) => {
  const object = objectOf(c.env, c.req.param("id"));
  return c.json(told(await object.restore(c.get("caller"), gatedCaller(c), named(c))));
};

function named(c: Context<Door, "/:id">): string {
  return checkpointIn(c.req.param("id"), c.req.param("checkpoint" as never));
}
