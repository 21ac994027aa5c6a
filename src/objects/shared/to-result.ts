/**
 * Owns making an object's answer of work that may be refused: an expected failure is a value, a fault is thrown.
 */
import { asBerthError, BerthError, errorBody, errors } from "../../protocol/errors.ts";
import { type Answer, type Refused, refused } from "./result.ts";

export async function answer<T>(work: () => T | Promise<T>): Promise<Answer<T>> {
  try {
    return { ok: await work() };
  } catch (error) {
    const known = asBerthError(error);
    if (known === undefined) throw error;
    return refused(known);
  }
}

export function asError({ code, message, hint, facts }: Refused): BerthError {
  return new BerthError(code, message, { facts, ...(hint === undefined ? {} : { hint }) });
}

export function failure(error: unknown, requestId: string): Response {
  const known = asBerthError(error);
  if (known === undefined) throw error;
  const { status, retryable } = errors[known.code];
  const headers = retryable ? { "retry-after": "1" } : undefined;
  return Response.json(errorBody(known, requestId), headers ? { status, headers } : { status });
}
