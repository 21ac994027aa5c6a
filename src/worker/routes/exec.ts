/**
 * Owns the route of exec: the call is checked, the object's answer is passed on untouched.
 */
import type { Context } from "hono";
import { execCallSchema } from "../../protocol/exec.ts";
import type { Door } from "../app.ts";
import { readBody } from "../body.ts";
import { exec } from "../operations.ts";

export async function execRoute(c: Context<Door, "/:id/exec">): Promise<Response> {
  const call = await readBody(c.req.raw, execCallSchema);
  return exec(c.env, c.var.caller, c.req.param("id"), call, c.var.requestId);
}
