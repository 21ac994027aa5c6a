/** Connects a WebSocket to a terminal. The Worker does not read its bytes. */
import { connectQuerySchema } from "../../protocol/terminal.ts";
import type { Handler } from "../http/context.ts";
import { sandboxObject } from "../http/objects.ts";
import { passSocket, protocols, requireUpgrade } from "../http/socket.ts";
import { validateTarget } from "../http/target.ts";
import { validate } from "../http/validate.ts";

export const connect: Handler = (c) => {
  requireUpgrade(c);
  const id = c.req.param("id");
  const object = sandboxObject(c.env, id);
  const terminal = String(validateTarget("terminal", id, c.req.param("terminal" as never)));
  const { ct: _ticket, ...fields } = c.req.query();
  const query = validate(connectQuerySchema, fields);
  return passSocket(c, object, { kind: "terminal", terminal, query, protocols: protocols(c) });
};
