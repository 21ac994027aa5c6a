/**
 * Owns reading flags and headers of calls; one that is not understood is named.
 */
import type { Context } from "hono";
import type { GatedCaller } from "../../objects/sandbox/lease/gated.ts";
import { BerthError } from "../../protocol/errors.ts";
import { idempotencyHeader, idempotencyKeySchema } from "../../protocol/fields/idempotency.ts";
import { leaseHeader, waitHeader } from "../../protocol/lease.ts";
import { limits } from "../../protocol/limits.ts";
import { handleSchema } from "../../protocol/process.ts";
import type { Door } from "../app.ts";

export function flag(c: Context<Door>, name: string): boolean {
  const text = c.req.query(name);
  if (text === undefined || text === "false" || text === "0") return false;
  if (text === "true" || text === "1") return true;
  throw bad(name, "must be true or false");
}

/** Of a gated call: its lease, or how long it may queue, and whether it may start a container. */
export function gatedCaller(c: Context<Door>): GatedCaller {
  const wait = c.req.header(waitHeader);
  const waitMs = wait === undefined ? undefined : Number(wait);
  if (waitMs !== undefined && !(/^\d+$/.test(wait ?? "") && waitMs <= limits.waitMaxMs)) {
    throw bad("Berth-Wait-Ms", `must be a whole number from 0 to ${limits.waitMaxMs}`);
  }
  const wake = c.req.query("wake");
  const { token: own } = c.get("caller");
  return {
    token: c.req.header(leaseHeader) === undefined ? undefined : leaseToken(c),
    waitMs,
    mayWake: wake === undefined || flag(c, "wake"),
    ...(own === undefined ? {} : { generation: own.generation }),
  };
}

/** The query of a gated call without what every gated call may say. */
export function ownQuery(c: Context<Door>): Record<string, string> {
  const { wake: _wake, ...own } = c.req.query();
  return own;
}

/** Of a call that is known by its key when it is repeated. */
export function keyedCaller(c: Context<Door>): GatedCaller {
  return { ...gatedCaller(c), key: idempotencyKey(c.req.header(idempotencyHeader)) };
}

export function idempotencyKey(told: string | undefined): string | undefined {
  if (told === undefined) return undefined;
  const key = idempotencyKeySchema.safeParse(told);
  if (key.success) return key.data;
  throw bad("Idempotency-Key", key.error.issues[0]?.message ?? "is not valid");
}

export function leaseToken(c: Context<Door>): string {
  const token = c.req.header(leaseHeader);
  if (token !== undefined && token !== "") return token;
  throw bad("Berth-Lease", "the header must carry the token of the lease");
}

/** An entity tag of ours: the version in quotes. */
export function ifMatch(c: Context<Door>): number | undefined {
  const text = c.req.header("if-match");
  if (text === undefined) return undefined;
  const version = /^"?(\d{1,15})"?$/.exec(text)?.[1];
  if (version === undefined) throw bad("If-Match", "must be a version as ETag gave it");
  return Number(version);
}

/** The id of a process, a session or a terminal in the path. */
export function handle(c: Context<Door>, name: "process" | "session" | "terminal"): string {
  const id = handleSchema.safeParse(c.req.param(name));
  if (id.success) return id.data;
  throw bad(name, id.error.issues[0]?.message ?? "is not valid");
}

export function bad(field: string, what: string): BerthError {
  return new BerthError("bad_request", `${field}: ${what}`, { facts: { field } });
}

/** Why a lease is taken away, in words. */
export function breakReason(reason: unknown): string {
  const isOne = typeof reason === "string" && reason !== "";
  if (isOne && reason.length <= limits.reasonCharsMax) return reason;
  throw bad("reason", `must say why, in at most ${limits.reasonCharsMax} characters`);
}
