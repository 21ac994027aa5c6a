/**
 * Owns what the wire says of a failure: expected ones by their code, ours as `internal`, logged.
 * Does not own the codes (src/protocol/error-codes.ts).
 */
import {
  BerthError,
  type ErrorBody,
  errorBody,
  errors,
} from "../../../src/protocol/error-codes.ts";

export function failureBody(thrown: unknown, requestId: string): ErrorBody {
  return errorBody(expected(thrown, requestId), requestId);
}

export function failureAnswer(thrown: unknown, requestId: string): Response {
  const body = failureBody(thrown, requestId);
  const { status } = errors[body.error.code];
  const allow = body.error.allow;
  const headers = Array.isArray(allow) ? { allow: allow.join(", ") } : {};
  return Response.json(body, { status, headers });
}

function expected(thrown: unknown, requestId: string): BerthError {
  if (thrown instanceof BerthError) return thrown;
  console.error(`request ${requestId}:`, thrown);
  return new BerthError("internal", "the agent failed; its log has the reason");
}
