/**
 * Owns the routes of the lease, its WebSocket among them.
 */
import type { Context } from "hono";
import { BerthError } from "../../protocol/errors.ts";
import { acquireCallSchema, leaseHeader, renewCallSchema } from "../../protocol/lease.ts";
import { limits } from "../../protocol/limits.ts";
import { type SocketCall, socketCallHeader } from "../../protocol/socket-call.ts";
import type { Door, Handler } from "../app.ts";
import { demand } from "../auth.ts";
import { parseCall, readBody } from "../body.ts";
import { objectOf, told } from "../operations.ts";
import { bad, flag, leaseToken } from "../query.ts";

const ticketProtocol = "berth.ticket.";
const leaseProtocol = "berth.lease.v1";

export const acquire: Handler = async (c) => {
  const object = objectOf(c.env, c.req.param("id"));
  const call = await readBody(c.req.raw, acquireCallSchema);
  const answer = told(await object.acquire(c.var.caller, call));
  return c.json(answer, "token" in answer ? 201 : 202);
};

export const renew: Handler = async (c) => {
  const object = objectOf(c.env, c.req.param("id"));
  const token = leaseToken(c);
  const { ttlMs } = await readBody(c.req.raw, renewCallSchema);
  return c.json(told(await object.renew(c.var.caller, token, ttlMs)));
};

export const release: Handler = async (c) => {
  const object = objectOf(c.env, c.req.param("id"));
  if (!flag(c, "break")) {
    return c.json(told(await object.release(c.var.caller, leaseToken(c), flag(c, "force"))));
  }
  demand(c.var.caller, "admin", c.req.param("id"));
  const reason = c.req.query("reason") ?? "";
  if (reason === "" || reason.length > limits.reasonCharsMax) {
    throw bad("reason", `must say why, in at most ${limits.reasonCharsMax} characters`);
  }
  return c.json(told(await object.breakLease(c.var.caller, reason)));
};

export const get: Handler = async (c) =>
  c.json(told(await objectOf(c.env, c.req.param("id")).leaseState(c.var.caller)));

export const connect: Handler = async (c) => {
  if (c.req.header("upgrade")?.toLowerCase() !== "websocket") {
    throw new BerthError("upgrade_required", "This route is a WebSocket.", {
      hint: "Send `Connection: Upgrade` and `Upgrade: websocket`.",
    });
  }
  checkOrigin(c);
  const object = objectOf(c.env, c.req.param("id"));
  const holder = c.req.query("holder");
  const call = parseCall(acquireCallSchema, holder === undefined ? {} : { holder });
  const ticket = connectTicket(c);
  const who = ticket === undefined ? { caller: c.var.caller } : { ticket };
  const told: SocketCall = { acquire: call, leaseToken: c.req.header(leaseHeader), ...who };
  const response = await object.fetch("http://object/lease", {
    headers: {
      upgrade: "websocket",
      "berth-request-id": c.var.requestId,
      [socketCallHeader]: JSON.stringify(told),
    },
  });
  if (response.webSocket === null || !protocols(c).includes(leaseProtocol)) return response;
  return new Response(null, {
    status: 101,
    webSocket: response.webSocket,
    headers: { "sec-websocket-protocol": leaseProtocol },
  });
};

/** Of a browser, which can set no header: a subprotocol, or `?ct=`. Good once. */
export function connectTicket(c: Context<Door>): string | undefined {
  const offered = protocols(c).find((name) => name.startsWith(ticketProtocol));
  return offered?.slice(ticketProtocol.length) ?? c.req.query("ct");
}

/** A page of somebody else's must not speak for the one who looks at it. */
function checkOrigin(c: Context<Door>): void {
  const origin = c.req.header("origin");
  if (origin === undefined || origin === new URL(c.req.url).origin) return;
  throw new BerthError("forbidden", "Pages of this origin may not connect.", {
    facts: { origin: origin.slice(0, 256) },
  });
}

function protocols(c: Context<Door>): string[] {
  return (c.req.header("sec-websocket-protocol") ?? "").split(",").map((name) => name.trim());
}
