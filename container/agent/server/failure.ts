/** Turns a thrown error into an error body: expected errors by their code, all others as `internal`, logged. */
import {
  BerthError,
  type ErrorBody,
  errorBody,
  errors,
} from "../../../src/protocol/error-codes.ts";
import { agentHeaders } from "../../../src/protocol/internal/agent-wire.ts";
import { refusalHeader } from "../../../src/protocol/internal/socket-call.ts";

export async function catchFailures<T>(
  request: Request,
  handle: () => Promise<T>,
): Promise<T | Response> {
  try {
    return await handle();
  } catch (error) {
    return failureResponse(error, readRequestId(request));
  }
}

export function readRequestId(request: Request): string {
  return request.headers.get(agentHeaders.requestId) ?? "";
}

export function failureBody(thrown: unknown, requestId: string): ErrorBody {
  return errorBody(toBerthError(thrown, requestId), requestId);
}

export function failureResponse(thrown: unknown, requestId: string): Response {
  const body = failureBody(thrown, requestId);
  const { status } = errors[body.error.code];
  const allow = body.error.allow;
  const headers = {
    ...(Array.isArray(allow) ? { allow: allow.join(", ") } : {}),
    [refusalHeader]: "1",
  };
  return Response.json(body, { status, headers });
}

function toBerthError(thrown: unknown, requestId: string): BerthError {
  if (thrown instanceof BerthError) return thrown;
  console.error(`request ${requestId}:`, thrown);
  return new BerthError("internal", "The agent failed. Its log has the reason.");
}
