/**
 * Owns the routes of tokens and of connect tickets.
 */
import { tokenCallSchema } from "../../protocol/rights.ts";
import type { Handler } from "../app.ts";
import { readBody } from "../http/body.ts";
import { createToken, objectOf, told } from "../http/operations.ts";

export const create: Handler = async (c) => {
  objectOf(c.env, c.req.param("id"));
  const call = await readBody(c.req.raw, tokenCallSchema);
  return c.json(await createToken(c.env, c.get("caller"), c.req.param("id"), call), 201);
};

export const revoke: Handler = async (c) => {
  told(await objectOf(c.env, c.req.param("id")).revokeTokens(c.get("caller")));
  return c.body(null, 204);
};

export const ticket: Handler = async (c) =>
  c.json(told(await objectOf(c.env, c.req.param("id")).connectTicket(c.get("caller"))), 201);
