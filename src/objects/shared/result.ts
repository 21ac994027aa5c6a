/**
 * The result of a call to an object over RPC: an expected failure is a value, not a thrown error.
 */
import type { BerthError, ErrorCode, ErrorFacts } from "../../protocol/errors.ts";

/** A `BerthError` as plain data. */
export type ErrorValue = { code: ErrorCode; message: string; hint?: string; facts: ErrorFacts };

export type Result<T> = { ok: T } | { refused: ErrorValue };

export function refusedResult(error: BerthError): { refused: ErrorValue } {
  const { code, message, hint, facts } = error;
  return { refused: { code, message, facts, ...(hint === undefined ? {} : { hint }) } };
}

/** A REST response. A short one travels as text, because a stream over RPC costs a sixth of an exec. */
export type WireResponse = Response | { status: number; json: string };
