/**
 * Owns the routes of terminals; the one that connects is a WebSocket, whose bytes nobody here reads.
 */
import {
  connectQuerySchema,
  terminalCallSchema,
  terminalResizeSchema,
} from "../../protocol/terminal.ts";
import type { Handler } from "../app.ts";
import { parseCall, readBody } from "../http/body.ts";
import { objectOf } from "../http/operations.ts";
import { handle } from "../http/query.ts";
import { demandUpgrade, passSocket, protocols } from "../http/socket.ts";
import { look, work } from "../work.ts";

export const create: Handler = (c) =>
  work(c, async () => ({
    do: "createTerminal",
    call: await readBody(c.req.raw, terminalCallSchema),
  }));

export const list: Handler = (c) => look(c, () => ({ noun: "terminals" }));

export const get: Handler = (c) =>
  look(c, () => ({ noun: "terminals", id: handle(c, "terminal") }));

export const resize: Handler = (c) =>
  look(c, async () => ({
    noun: "terminals",
    id: handle(c, "terminal"),
    resize: await readBody(c.req.raw, terminalResizeSchema),
  }));

export const end: Handler = (c) =>
  look(c, () => ({ noun: "terminals", id: handle(c, "terminal"), end: true }));

export const screen: Handler = (c) =>
  look(c, () => ({ noun: "terminals", id: handle(c, "terminal"), part: "screen" }));

export const connect: Handler = (c) => {
  demandUpgrade(c);
  const object = objectOf(c.env, c.req.param("id"));
  const terminal = handle(c, "terminal");
  const { ct: _ticket, ...asked } = c.req.query();
  const query = parseCall(connectQuerySchema, asked);
  return passSocket(c, object, { kind: "terminal", terminal, query, protocols: protocols(c) });
};
