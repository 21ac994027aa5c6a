/**
 * Owns the routes of a sandbox as a whole: make, look, start, pause, touch, end.
 */
import { idempotencyHeader } from "../../protocol/fields/idempotency.ts";
import type { Handler } from "../app.ts";
import { readBody } from "../http/body.ts";
import { objectOf, told } from "../http/operations.ts";
import { flag, gatedCaller } from "../http/query.ts";
import { createSandbox, writtenCallSchema } from "../special/create.ts";

export const create: Handler = async (c) => {
  const written = await readBody(c.req.raw, writtenCallSchema);
  const { sandbox, made } = await createSandbox(c.env, c.get("caller"), written, {
    idempotencyKey: c.req.header(idempotencyHeader),
    lease: gatedCaller(c).token,
    force: flag(c, "force"),
  });
  c.header("location", `/v1/sandboxes/${sandbox.id}`);
  return c.json(sandbox, made ? 201 : 200);
};

export const get: Handler = async (c) =>
  c.json(told(await objectOf(c.env, c.req.param("id")).get(c.get("caller"))));

export const start: Handler = async (c) =>
  c.json(told(await objectOf(c.env, c.req.param("id")).start(c.get("caller"))));

export const pause: Handler = async (c) => {
  const object = objectOf(c.env, c.req.param("id"));
  const how = { force: flag(c, "force"), discardFiles: flag(c, "discardFiles") };
  return c.json(told(await object.pause(c.get("caller"), gatedCaller(c), how)));
};

export const touch: Handler = async (c) =>
  c.json(told(await objectOf(c.env, c.req.param("id")).touch(c.get("caller"))));

export const destroy: Handler = async (c) => {
  const object = objectOf(c.env, c.req.param("id"));
  return c.json(told(await object.destroy(c.get("caller"), gatedCaller(c), flag(c, "force"))));
};
