/**
 * Decides whether and when a failed request is sent again: only if it surely did not run, or may run twice. A lease
 * held by somebody else is for the caller to handle: such refusals are never repeated.
 */
import { asBerthError, type BerthError, type ErrorCode } from "../../protocol/error-codes.ts";
import { backOffMs } from "./timing.ts";

/** When a failed request is sent again. */
export type RetryPolicy = {
  /** How often a request is sent again. 0: never. Default: 4. */
  retries: number;
  /** No request is sent again after this time, in ms from its first attempt. Default: 30,000. */
  retryForMs: number;
};

export const defaultRetries: RetryPolicy = { retries: 4, retryForMs: 30_000 };

/** Codes marked `retryable` that mean nothing was done. */
const refusals: ReadonlySet<ErrorCode> = new Set(["unavailable", "too_many", "body_timeout"]);

type FailedAttempt = {
  error: BerthError;
  isRepeatable: boolean;
  /** The attempts so far. */
  sent: number;
  tookMs: number;
  /** The response's `Retry-After`. */
  retryAfterMs: number;
};

/** The delay in ms before the next attempt; undefined: do not repeat. `chance` is a random number from 0 to 1. */
export function retryDelay(
  policy: RetryPolicy,
  failed: FailedAttempt,
  chance: number,
): number | undefined {
  if (failed.sent > policy.retries || !isSafeToRepeat(failed)) return undefined;
  const full = backOffMs(failed.sent);
  // Between three quarters and all of it, so that many clients do not come back together, and four attempts outlast a
  // cut of two seconds.
  const delay = Math.max(failed.retryAfterMs, full * (0.75 + chance / 4));
  return failed.tookMs + delay > policy.retryForMs ? undefined : delay;
}

export function isRefusal({ code }: BerthError): boolean {
  return refusals.has(code);
}

function isSafeToRepeat({ error, isRepeatable }: FailedAttempt): boolean {
  if (isRefusal(error)) return true;
  return isRepeatable && error.code === "operation_interrupted" && error.facts.admitted !== true;
}

/** `Retry-After` in seconds or as a date. */
export function parseRetryAfterMs(header: string | null, now: number): number {
  if (header === null) return 0;
  const seconds = Number(header);
  const ms = Number.isNaN(seconds) ? Date.parse(header) - now : seconds * 1000;
  return Number.isFinite(ms) ? Math.max(0, ms) : 0;
}

/** Whether trying again may help: the error says nothing about the sandbox, only that it could not be reached. */
export function isTransient(error: unknown): boolean {
  const known = asBerthError(error);
  return known !== undefined && transientCodes.has(known.code);
}

const transientCodes = new Set(["unavailable", "too_many", "queue_full", "operation_interrupted"]);
