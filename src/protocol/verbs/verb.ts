/**
 * Owns the form of one row of the table of routes, and the errors that rows have in common.
 * Does not own the rows: routes.ts and what it takes in.
 */
import type { z } from "zod";
import type { ErrorCode } from "../errors.ts";
import type { Right } from "../rights.ts";

export type Route = {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** `:name` marks a parameter. */
  path: string;
  summary: string;
  /**
   * What a token must be good for; of a list, one will do. Left out: anyone may call it, without a key.
   * `key`: no token will do, and `needs` says more.
   */
  right?: Right | "key" | readonly Right[];
  /** What whoever has a key must be allowed as well: a key has all rights, the binding of another Worker those of its props. */
  needs?: Right | readonly Right[];
  /** Gated by the lease: while somebody holds it, only with its token. */
  gated?: true;
  /** Runs at most once for all calls with the same Idempotency-Key. */
  keyed?: true;
  query?: z.ZodType;
  body?: z.ZodType | "bytes";
  answers: Record<number, { schema: z.ZodType | "stream"; meaning: string }>;
  errors: ErrorCode[];
};

export const atTheDoor: ErrorCode[] = ["unauthenticated", "forbidden"];
export const badBody: ErrorCode[] = [
  "bad_request",
  "bad_json",
  "too_large",
  "unsupported_type",
  "body_timeout",
];
export const ofOneSandbox: ErrorCode[] = [...atTheDoor, "not_found", "unavailable"];
export const ofOneAlive: ErrorCode[] = [...ofOneSandbox, "sandbox_destroyed"];
export const atTheGate: ErrorCode[] = [
  "lease_held",
  "lease_pending",
  "lease_wait_timeout",
  "lease_lost",
];

export const one = "/v1/sandboxes/:id";
