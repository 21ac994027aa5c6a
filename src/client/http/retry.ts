/**
 * Owns when a failed call is sent again, and after how long: only what surely did not run, or may run twice.
 * Does not own sending. Who else holds the lease is for the caller to decide: such refusals are never repeated.
 */
import type { BerthError, ErrorCode } from "../../protocol/error-codes.ts";

export type RetryPolicy = {
  /** How often a call is sent again; 0: never. */
  retries: number;
  /** No call is sent again after this long, counted from its beginning. */
  retryForMs: number;
};

export const usualRetries: RetryPolicy = { retries: 4, retryForMs: 30_000 };

const firstDelayMs = 200;
const delayMsMax = 5_000;

/** Marked `retryable` in the table, and nothing was done. */
const refusedForNow: ReadonlySet<ErrorCode> = new Set(["unavailable", "too_many", "body_timeout"]);

export type Failed = {
  error: BerthError;
  isRepeatable: boolean;
  /** How often it was sent so far. */
  sent: number;
  tookMs: number;
  /** What the answer asked for. */
  retryAfterMs: number;
};

/** After how many ms to send it again; undefined: not at all. `chance` is from 0 to 1. */
export function retryDelay(
  policy: RetryPolicy,
  failed: Failed,
  chance: number,
): number | undefined {
  if (failed.sent > policy.retries || !mayRepeat(failed)) return undefined;
  const full = Math.min(firstDelayMs * 2 ** (failed.sent - 1), delayMsMax);
  // At least half of it, so that a crowd neither comes back together nor at once.
  const delay = Math.max(failed.retryAfterMs, full * (0.5 + chance / 2));
  return failed.tookMs + delay > policy.retryForMs ? undefined : delay;
}

export function isRefusedForNow({ code }: BerthError): boolean {
  return refusedForNow.has(code);
}

function mayRepeat({ error, isRepeatable }: Failed): boolean {
  if (isRefusedForNow(error)) return true;
  return isRepeatable && error.code === "operation_interrupted" && error.facts.admitted !== true;
}

/** `Retry-After` in seconds or as a date. */
export function retryAfterMs(header: string | null, now: number): number {
  if (header === null) return 0;
  const seconds = Number(header);
  const ms = Number.isNaN(seconds) ? Date.parse(header) - now : seconds * 1000;
  return Number.isFinite(ms) ? Math.max(0, ms) : 0;
}
