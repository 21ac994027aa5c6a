/**
 * Owns the route of exec: the call is checked, the object's answer is passed on untouched.
 */
import { execCallSchema } from "../../protocol/exec.ts";
import type { Handler } from "../app.ts";
import { readBody } from "../http/body.ts";
import { objectOf } from "../http/operations.ts";
import { keyedCaller } from "../http/query.ts";

export const exec: Handler = async (c) => {
  const object = objectOf(c.env, c.req.param("id"));
  const gated = keyedCaller(c);
  const call = await readBody(c.req.raw, execCallSchema);
  // The door has looked at the rights; the object has no use for them.
  const caller = { ...c.get("caller"), rights: [] };
  const reply = await object.exec(caller, gated, call, c.get("requestId"));
  if (reply instanceof Response) return reply;
  const headers = { "content-type": "application/json" };
  return new Response(reply.json, { status: reply.status, headers });
};
