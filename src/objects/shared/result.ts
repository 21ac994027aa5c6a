/** The result of a call to an object over RPC: an expected failure becomes a value, a bug stays an exception. */
import {
  asBerthError,
  BerthError,
  type ErrorCode,
  type ErrorFacts,
  errorBody,
  errors,
} from "../../protocol/errors.ts";

/** A `BerthError` as plain data. */
export type ErrorValue = { code: ErrorCode; message: string; hint?: string; facts: ErrorFacts };

export type Result<T> = { ok: T } | { refused: ErrorValue };

/** A REST response. A short one travels as text, because a stream over RPC costs a sixth of an exec. */
export type WireResponse = Response | { status: number; json: string };

export async function toResult<T>(work: () => T | Promise<T>): Promise<Result<T>> {
  try {
    return { ok: await work() };
  } catch (error) {
    const known = asBerthError(error);
    if (known === undefined) throw error;
    return refusedResult(known);
  }
}

export function refusedResult({ code, message, hint, facts }: BerthError): { refused: ErrorValue } {
  return { refused: { code, message, facts, ...(hint === undefined ? {} : { hint }) } };
}

export function toBerthError({ code, message, hint, facts }: ErrorValue): BerthError {
  return new BerthError(code, message, { facts, ...(hint === undefined ? {} : { hint }) });
}

export function errorResponse(error: unknown, requestId: string): Response {
  const known = asBerthError(error);
  if (known === undefined) throw error;
  const { status, retryable } = errors[known.code];
  const headers = retryable ? { "retry-after": "1" } : undefined;
  return Response.json(errorBody(known, requestId), headers ? { status, headers } : { status });
}

/** For the log, where anything that was thrown is one line of text. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
