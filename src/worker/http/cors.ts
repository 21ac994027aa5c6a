/**
 * Answers browsers: pages of the origins that BERTH_ORIGINS lists may call with a key or token and read the response.
 * Browsers keep responses from all other pages.
 */
import type { MiddlewareHandler } from "hono";
import { cors } from "hono/cors";
import { isConfigured, readConfig } from "../../config.ts";
import { idempotencyHeader } from "../../protocol/fields/id.ts";
import { transferHeaders } from "../../protocol/internal/transfer-call.ts";
import { leaseHeader, waitHeader } from "../../protocol/lease.ts";
import { logOffsetHeader } from "../../protocol/process.ts";
import { type VerbRow, verbs } from "../../protocol/verbs.ts";
import type { ApiEnv } from "./context.ts";

/** The longest time that browsers cache a preflight. An origin that is removed from the list cannot read responses at once. */
const preflightCacheS = 7200;

/** Used only for listed origins. The API has no cookies, so credentials stay off. */
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
  maxAge: preflightCacheS,
});

/** Runs before authentication, because a preflight has no key. */
export const allowOrigins: MiddlewareHandler<ApiEnv> = async (c, next) => {
  // The front page and /health say what is missing.
  if (!isConfigured(c.env)) return next();
  const { origins } = readConfig(c.env);
  const isSocket = c.req.header("upgrade") !== undefined;
  if (origins.size === 0 || isSocket) return next();
  if (origins.has(c.req.header("origin") ?? "")) return allowed(c, next);
  await next();
  // A cache must not return this response to a listed origin.
  c.header("vary", "Origin", { append: true });
};
