/** HTTP handlers of the verbs over all sandboxes of a tenant: the Directory serves them. */
import { sandboxesQuerySchema } from "../../protocol/directory.ts";
import type { Handler } from "../http/context.ts";
import { directoryObject, unwrap } from "../http/objects.ts";
import { validate } from "../http/validate.ts";

export const list: Handler = async (c) => {
  const metadata = c.req.queries("metadata");
  const fields = { ...c.req.query(), ...(metadata === undefined ? {} : { metadata }) };
  const query = validate(sandboxesQuerySchema, fields);
  return c.json(unwrap(await directoryObject(c.env, c.get("caller")).list(c.get("caller"), query)));
};

export const count: Handler = async (c) =>
  c.json(unwrap(await directoryObject(c.env, c.get("caller")).counts()));
