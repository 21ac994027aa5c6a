/** HTTP handlers of the lease: its token is a header, and a WebSocket can hold it. */
import { leaseProtocol, leaseTokenProtocol } from "../../protocol/internal/socket-call.ts";
import {
  acquireCallSchema,
  breakReasonSchema,
  connectLeaseQuerySchema,
  leaseHeader,
  releaseQuerySchema,
  renewCallSchema,
} from "../../protocol/lease.ts";
import { limits } from "../../protocol/limits.ts";
import { requireRight } from "../auth/auth.ts";
import { readBody } from "../http/body.ts";
import type { Handler } from "../http/context.ts";
import { leaseToken } from "../http/headers.ts";
import { sandboxCalls, sandboxObject, unwrap } from "../http/objects.ts";
import { readQuery } from "../http/query.ts";
import { passSocket, protocols, requireUpgrade } from "../http/socket.ts";
import { invalidField, validate, validateField } from "../http/validate.ts";

export const acquire: Handler = async (c) => {
  const callVerb = sandboxCalls(c);
  const body = await readBody(c.req.raw, acquireCallSchema);
  const lease = unwrap(await callVerb("acquireLease", { body }));
  return c.json(lease, "token" in lease ? 201 : 202);
};

export const renew: Handler = async (c) => {
  const callVerb = sandboxCalls(c);
  const token = leaseToken(c);
  const { ttlMs } = await readBody(c.req.raw, renewCallSchema);
  return c.json(unwrap(await callVerb("renewLease", { token, ttlMs })));
};

export const release: Handler = async (c) => {
  const callVerb = sandboxCalls(c);
  const query = readQuery(releaseQuerySchema, c.req.url);
  if (query.break) {
    requireRight(c.get("caller"), "admin", c.req.param("id"));
    return c.json(unwrap(await callVerb("breakLease", { reason: breakReason(query.reason) })));
  }
  const args = { token: leaseToken(c), force: query.force };
  return c.json(unwrap(await callVerb("releaseLease", args)));
};

export const connect: Handler = async (c) => {
  const { holder } = readQuery(connectLeaseQuerySchema, c.req.url);
  requireUpgrade(c);
  const object = sandboxObject(c.env, c.req.param("id"));
  const acquire = validate(acquireCallSchema, holder === undefined ? {} : { holder });
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

/** Why a lease is revoked: the event of it and its holder say so. */
export function breakReason(reason: unknown): string {
  if (typeof reason === "string" && reason !== "") {
    return validateField("reason", breakReasonSchema, reason);
  }
  throw invalidField("reason", `must say why, in at most ${limits.reasonCharsMax} characters`);
}
