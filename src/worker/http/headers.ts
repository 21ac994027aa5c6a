/** Reads what calls have in common, from headers or RPC options: the lease, the idempotency key, the version. */
import { createHash } from "node:crypto";
import type { Context } from "hono";
import type { GatedCaller } from "../../objects/sandbox/lease/gated-admission.ts";
import {
  callIdHeader,
  callIdSchema,
  idempotencyHeader,
  idempotencyKeySchema,
} from "../../protocol/fields/id.ts";
import { flagSchema, queryNumber, wholeNumber } from "../../protocol/fields/scalar.ts";
import { leaseHeader, waitHeader } from "../../protocol/lease.ts";
import { limits } from "../../protocol/limits.ts";
import type { CallParts } from "../../protocol/verbs/arguments.ts";
import type { ApiEnv } from "./context.ts";
import { invalidField, validateField } from "./validate.ts";

export const eventStreamType = "text/event-stream";
export const bytesType = "application/octet-stream";

const waitText = queryNumber(0, limits.waitMaxMs).optional();
const waitNumber = wholeNumber(0, limits.waitMaxMs).optional();
const wakeFlag = flagSchema.default(true);
const optionalKey = idempotencyKeySchema.optional();
const optionalCallId = callIdSchema.optional();

/** For a gated call: its lease or how long it may wait for one, and whether it may start a container. */
export function gatedCaller(c: Context<ApiEnv>): GatedCaller {
  const { token, keyId } = c.get("caller");
  return {
    token: c.req.header(leaseHeader) === undefined ? undefined : leaseToken(c),
    waitMs: validateField("Berth-Wait-Ms", waitText, c.req.header(waitHeader)),
    mayWake: validateField("wake", wakeFlag, c.req.query("wake")),
    ...(token === undefined ? {} : { generation: token.generation }),
    ...(keyId === undefined ? {} : { keyId }),
  };
}

export function idempotentCaller(c: Context<ApiEnv>): GatedCaller {
  return {
    ...gatedCaller(c),
    key: idempotencyKey(c.req.header(idempotencyHeader)),
    callId: callId(c.req.header(callIdHeader)),
  };
}

function callId(text: string | undefined): string | undefined {
  return validateField("Berth-Call-Id", optionalCallId, text);
}

export function idempotencyKey(text: string | undefined): string | undefined {
  return validateField("Idempotency-Key", optionalKey, text);
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

/** The options of a gated RPC method: what REST reads from headers. They can have any type. */
export function gatedOptions({ lease, waitMs, wake }: CallParts["headers"]): GatedCaller {
  const wait = validateField("waitMs", waitNumber, waitMs);
  return { token: lease, waitMs: wait, mayWake: wake ?? true };
}

export function idempotentOptions(options: CallParts["headers"]): GatedCaller {
  return {
    ...gatedOptions(options),
    key: idempotencyKey(options.idempotencyKey),
    callId: callId(options.callId),
  };
}

/** Hashes a call, so that a repeated call is recognised. The order of fields does not matter. */
export function hashOf(call: unknown): string {
  return createHash("sha256")
    .update(JSON.stringify(sorted(call)))
    .digest("hex");
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, inner]) => [name, sorted(inner)]));
}
