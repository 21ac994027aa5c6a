/**
 * Reads the headers that calls have in common: the lease, the idempotency key, the metadata version.
 */
import type { Context } from "hono";
import type { GatedCaller } from "../../objects/sandbox/lease/gated-admission.ts";
import { idempotencyHeader, idempotencyKeySchema } from "../../protocol/fields/idempotency.ts";
import { leaseHeader, waitHeader } from "../../protocol/lease.ts";
import { limits } from "../../protocol/limits.ts";
import type { ApiEnv } from "./context.ts";
import { invalidField } from "./validate.ts";

/** For a gated call: its lease or how long it may wait for one, and whether it may start a container. */
export function gatedCaller(c: Context<ApiEnv>): GatedCaller {
  const wait = c.req.header(waitHeader);
  const waitMs = wait === undefined ? undefined : Number(wait);
  if (waitMs !== undefined && !(/^\d+$/.test(wait ?? "") && waitMs <= limits.waitMaxMs)) {
    throw invalidField("Berth-Wait-Ms", `must be a whole number from 0 to ${limits.waitMaxMs}`);
  }
  const { token } = c.get("caller");
  return {
    token: c.req.header(leaseHeader) === undefined ? undefined : leaseToken(c),
    waitMs,
    mayWake: wakeOf(c.req.query("wake")),
    ...(token === undefined ? {} : { generation: token.generation }),
  };
}

export function idempotentCaller(c: Context<ApiEnv>): GatedCaller {
  return { ...gatedCaller(c), key: idempotencyKey(c.req.header(idempotencyHeader)) };
}

function wakeOf(text: string | undefined): boolean {
  if (text === undefined || text === "true" || text === "1") return true;
  if (text === "false" || text === "0") return false;
  throw invalidField("wake", "must be true or false");
}

export function idempotencyKey(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const key = idempotencyKeySchema.safeParse(text);
  if (key.success) return key.data;
  throw invalidField("Idempotency-Key", key.error.issues[0]?.message ?? "is not valid");
}

export function leaseToken(c: Context<ApiEnv>): string {
  const token = c.req.header(leaseHeader);
  if (token !== undefined && token !== "") return token;
  throw invalidField("Berth-Lease", "the header must carry the token of the lease");
}

/** The entity tag of metadata is its version in quotes. */
export function ifMatch(c: Context<ApiEnv>): number | undefined {
  const text = c.req.header("if-match");
  if (text === undefined) return undefined;
  const version = /^"?(\d{1,15})"?$/.exec(text)?.[1];
  if (version === undefined) throw invalidField("If-Match", "must be a version as ETag gave it");
  return Number(version);
}
