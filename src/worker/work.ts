/**
 * Owns the way of calls on processes, sessions and terminals from the door to the object, and of its reply back.
 */
import type { Context } from "hono";
import type { Look, Work } from "../objects/sandbox/dispatch/work-call.ts";
import type { GatedCaller } from "../objects/sandbox/lease/gated.ts";
import type { Caller } from "../protocol/rights.ts";
import type { Door } from "./app.ts";
import { objectOf } from "./http/operations.ts";
import { gatedCaller, keyedCaller } from "./http/query.ts";
import { answered } from "./http/reply.ts";

type Of = Context<Door, "/:id">;

export function work(c: Of, read: () => Work | Promise<Work>): Promise<Response> {
  return send(c, gatedCaller, read);
}

export function keyedWork(c: Of, read: () => Promise<Work>): Promise<Response> {
  return send(c, keyedCaller, read);
}

export async function look(c: Of, read: () => Look | Promise<Look>): Promise<Response> {
  const object = objectOf(c.env, c.req.param("id"));
  return answered(
    await object.look(knownCaller(c.get("caller")), await read(), c.get("requestId")),
  );
}

async function send(
  c: Of,
  gatedOf: (c: Of) => GatedCaller,
  read: () => Work | Promise<Work>,
): Promise<Response> {
  const object = objectOf(c.env, c.req.param("id"));
  const gated = gatedOf(c);
  const caller = knownCaller(c.get("caller"));
  return answered(await object.work(caller, gated, await read(), c.get("requestId")));
}

/** The door has looked at the rights; the object has no use for them. */
function knownCaller(caller: Caller): Caller {
  return { ...caller, rights: [] };
}
