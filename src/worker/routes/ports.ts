/**
 * Owns the routes by which ports are opened, listed and closed. Traffic to them: port-traffic.ts.
 */
import { pathPortSchema, portCallSchema } from "../../protocol/port.ts";
import type { Handler } from "../app.ts";
import { readBody } from "../http/body.ts";
import { objectOf, told } from "../http/operations.ts";
import { badPort, portOf } from "../ports/port-traffic.ts";

export const open: Handler = async (c) => {
  const id = c.req.param("id");
  const object = objectOf(c.env, id);
  const call = await readBody(c.req.raw, portCallSchema);
  return c.json(
    portOf(c.req.url, id, call, told(await object.openPort(c.get("caller"), call))),
    201,
  );
};

export const list: Handler = async (c) =>
  c.json(told(await objectOf(c.env, c.req.param("id")).ports(c.get("caller"))));

export const close: Handler = async (c) => {
  const object = objectOf(c.env, c.req.param("id"));
  const port = pathPortSchema.safeParse(c.req.param("port" as never));
  if (!port.success) throw badPort();
  told(await object.closePort(c.get("caller"), port.data));
  return c.body(null, 204);
};
