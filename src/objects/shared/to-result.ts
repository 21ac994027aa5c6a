/**
 * Converts between thrown errors and results: an expected failure becomes a value, a bug stays an exception.
 */
import { asBerthError, BerthError, errorBody, errors } from "../../protocol/errors.ts";
import { type ErrorValue, type Result, refusedResult } from "./result.ts";

export async function toResult<T>(work: () => T | Promise<T>): Promise<Result<T>> {
  try {
    return { ok: await work() };
  } catch (error) {
    const known = asBerthError(error);
    if (known === undefined) throw error;
    return refusedResult(known);
  }
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
