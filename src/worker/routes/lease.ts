/**
 * Owns the routes of the lease, its WebSocket among them.
 */

import { leaseProtocol, leaseTokenProtocol } from "../../protocol/internal/socket-names.ts";
import { acquireCallSchema, leaseHeader, renewCallSchema } from "../../protocol/lease.ts";
import type { Handler } from "../app.ts";
import { demand } from "../auth/auth.ts";
import { parseCall, readBody } from "../http/body.ts";
import { objectOf, told } from "../http/operations.ts";
import { breakReason, flag, leaseToken } from "../http/query.ts";
import { demandUpgrade, passSocket, protocols } from "../http/socket.ts";

export const acquire: Handler = async (c) => {
  const object = objectOf(c.env, c.req.param("id"));
  const call = await readBody(c.req.raw, acquireCallSchema);
  const answer = told(await object.acquire(c.get("caller"), call));
  return c.json(answer, "token" in answer ? 201 : 202);
};

export const renew: Handler = async (c) => {
  const object = objectOf(c.env, c.req.param("id"));
  const token = leaseToken(c);
  const { ttlMs } = await readBody(c.req.raw, renewCallSchema);
  return c.json(told(await object.renew(c.get("caller"), token, ttlMs)));
};

export const release: Handler = async (c) => {
  const object = objectOf(c.env, c.req.param("id"));
  if (!flag(c, "break")) {
    return c.json(told(await object.release(c.get("caller"), leaseToken(c), flag(c, "force"))));
  }
  demand(c.get("caller"), "admin", c.req.param("id"));
  const reason = breakReason(c.req.query("reason"));
  return c.json(told(await object.breakLease(c.get("caller"), reason)));
};

export const get: Handler = async (c) =>
  c.json(told(await objectOf(c.env, c.req.param("id")).leaseState(c.get("caller"))));

export const connect: Handler = async (c) => {
  demandUpgrade(c);
  const object = objectOf(c.env, c.req.param("id"));
  const holder = c.req.query("holder");
  const acquire = parseCall(acquireCallSchema, holder === undefined ? {} : { holder });
  const offered = protocols(c).find((name) => name.startsWith(leaseTokenProtocol));
  const leaseToken = c.req.header(leaseHeader) ?? offered?.slice(leaseTokenProtocol.length);
  const response = await passSocket(c, object, { kind: "lease", acquire, leaseToken });
  if (response.webSocket === null || !protocols(c).includes(leaseProtocol)) return response;
  return new Response(null, {
    status: 101,
    webSocket: response.webSocket,
    headers: { "sec-websocket-protocol": leaseProtocol },
  });
};
