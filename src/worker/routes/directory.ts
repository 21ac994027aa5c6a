/**
 * Owns the routes over all sandboxes of a tenant: lists and counts.
 */
import { sandboxesQuerySchema } from "../../protocol/directory.ts";
import type { Handler } from "../app.ts";
import { parseCall } from "../http/body.ts";
import { directoryOf, told } from "../http/operations.ts";

export const list: Handler = async (c) => {
  const metadata = c.req.queries("metadata");
  const asked = { ...c.req.query(), ...(metadata === undefined ? {} : { metadata }) };
  const query = parseCall(sandboxesQuerySchema, asked);
  return c.json(told(await directoryOf(c.env, c.get("caller")).list(c.get("caller"), query)));
};

export const counts: Handler = async (c) =>
  c.json(told(await directoryOf(c.env, c.get("caller")).counts()));
