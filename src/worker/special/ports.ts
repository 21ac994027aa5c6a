/**
 * Opens ports. Only the Worker knows the address by which it was reached, and so the address of the port.
 */
import { portCallSchema } from "../../protocol/port.ts";
import { readBody } from "../http/body.ts";
import type { Handler } from "../http/context.ts";
import { sandboxObject, unwrap } from "../http/objects.ts";
import { portOf } from "../ports/port-traffic.ts";

export const open: Handler = async (c) => {
  const id = c.req.param("id");
  const object = sandboxObject(c.env, id);
  const call = await readBody(c.req.raw, portCallSchema);
  const opened = await object.callVerb("openPort", c.get("caller"), { call }, c.get("requestId"));
  return c.json(portOf(c.req.url, id, call, unwrap(opened)), 201);
};
