/**
 * Owns what pages of other origins are told: those that BERTH_ORIGINS lists may call, with a key or token that they
 * bring, and read the answer. All others get what any program gets, and their browser keeps it from them.
 * Does not own WebSockets (socket.ts), nor servers in sandboxes, which speak for themselves (port-traffic.ts).
 */
import type { MiddlewareHandler } from "hono";
import { cors } from "hono/cors";
import { configOf } from "../../config.ts";
import { idempotencyHeader } from "../../protocol/fields/idempotency.ts";
import { transferHeaders } from "../../protocol/internal/transfer-call.ts";
import { leaseHeader, waitHeader } from "../../protocol/lease.ts";
import { logOffsetHeader } from "../../protocol/process.ts";
import { type VerbRow, verbs } from "../../protocol/verbs.ts";
import type { ApiEnv } from "./context.ts";

/** The longest that browsers remember what they may send; an origin that is taken off the list reads nothing at once. */
const rememberedS = 7200;

/** Only ever asked for an origin that is listed. No cookie is known here, so none is to be sent. */
const allowed = cors({
  origin: (origin) => origin,
  allowMethods: [...new Set((Object.values(verbs) as VerbRow[]).map(({ method }) => method))],
  allowHeaders: [
    ...new Set([
      ...["authorization", "content-type", "berth-request-id", "last-event-id"],
      ...[leaseHeader, waitHeader, idempotencyHeader],
      ...[...transferHeaders.down, ...transferHeaders.up],
    ]),
  ],
  exposeHeaders: [
    ...["berth-request-id", "location", "retry-after", "allow", "www-authenticate"],
    ...[logOffsetHeader, ...transferHeaders.back],
  ],
  maxAge: rememberedS,
});

/** Before anything asks for a key: a browser sends none with the question whether it may call. */
export const allowOrigins: MiddlewareHandler<ApiEnv> = async (c, next) => {
  const { origins } = configOf(c.env);
  const isSocket = c.req.header("upgrade") !== undefined;
  if (origins.size === 0 || isSocket) return next();
  if (origins.has(c.req.header("origin") ?? "")) return allowed(c, next);
  await next();
  // Whoever keeps answers must not give this one to a listed origin.
  c.header("vary", "Origin", { append: true });
};
