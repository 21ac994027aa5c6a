/**
 * Owns the routes of a sandbox as a whole: make, look, end.
 */
import type { Context } from "hono";
import { createCallSchema } from "../../protocol/sandbox.ts";
import type { Door } from "../app.ts";
import { readBody } from "../body.ts";
import { createSandbox, destroySandbox, getSandbox } from "../operations.ts";

export async function createRoute(c: Context<Door>): Promise<Response> {
  const call = await readBody(c.req.raw, createCallSchema);
  const sandbox = await createSandbox(c.env, c.var.caller, call);
  c.header("location", `/v1/sandboxes/${sandbox.id}`);
  return c.json(sandbox, 201);
}

export async function getRoute(c: Context<Door, "/:id">): Promise<Response> {
  return c.json(await getSandbox(c.env, c.var.caller, c.req.param("id")));
}

export async function destroyRoute(c: Context<Door, "/:id">): Promise<Response> {
  return c.json(await destroySandbox(c.env, c.var.caller, c.req.param("id")));
}
