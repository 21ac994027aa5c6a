/**
 * Turns an error response or a failed connection into a `BerthError`. Never says that a call ran, or that it did not,
 * unless that is known.
 */
import {
  BerthError,
  type ErrorBody,
  type ErrorCode,
  type ErrorFacts,
  errors,
} from "../../protocol/error-codes.ts";

/** The request that failed. `reads`: it changes nothing, so it can be repeated safely. */
export type SentRequest = { requestId: string; url: string; reads: boolean };

/** An error as the server writes it, in a response or on a stream. */
export type SentError = {
  code: string;
  message: string;
  hint?: string;
  retryable?: boolean;
} & ErrorFacts;

/** The error that the server has sent. `unknownCode` replaces a code that this version does not know. */
export function toBerthError(
  { code, message, hint, retryable: _retryable, ...facts }: SentError,
  unknownCode: ErrorCode,
  requestId?: string,
): BerthError {
  const known = Object.hasOwn(errors, code);
  return new BerthError(known ? (code as ErrorCode) : unknownCode, message, {
    facts: known ? facts : { ...facts, told: code },
    hint,
    requestId,
  });
}

export function isErrorBody(body: unknown): body is ErrorBody {
  const error = (body as Partial<ErrorBody> | null | undefined)?.error;
  return typeof error === "object" && error !== null && typeof error.message === "string";
}

/** The error of a response: Berth's own, or that somebody else responded. */
export function responseError(body: unknown, status: number, request: SentRequest): BerthError {
  if (!isErrorBody(body)) return foreignResponse(request, status);
  return toBerthError(body.error, codeForStatus(status), body.requestId);
}

/** The response is not Berth's: a proxy or another server sent it. */
function foreignResponse(request: SentRequest, status: number): BerthError {
  if (status >= 500) {
    return lostResponse(request, `A proxy in front of Berth responded with status ${status}.`);
  }
  const { requestId, url } = request;
  const message = `${url} responded with status ${status}, but not as Berth does.`;
  return new BerthError(codeForStatus(status), message, {
    requestId,
    hint: "Check the `url` given to connect(): it must be the address of Berth.",
  });
}

/** These codes mean that no connection was made, so nothing was sent. */
const neverSent = new Set([
  ...["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"],
  ...["ETIMEDOUT", "UND_ERR_CONNECT_TIMEOUT"],
]);

export function connectionFailure(thrown: unknown, request: SentRequest): BerthError {
  const { requestId, url, reads } = request;
  const { code, syscall } = findCause(thrown);
  const reason = code === undefined ? "" : ` (${code})`;
  // A connection that was open fails with the same codes, but in a read or a write.
  const wasOpen = syscall === "read" || syscall === "write";
  if (reads || (code !== undefined && neverSent.has(code) && !wasOpen)) {
    return new BerthError("unavailable", `${url} could not be reached${reason}.`, {
      requestId,
      hint: "Check that Berth runs there and that the `url` given to connect() is right.",
    });
  }
  const message = `The connection to ${url} was lost before the response${reason}.`;
  return lostResponse(
    request,
    message,
    "The call may have taken effect. Calls with an `idempotencyKey` are repeated without running twice.",
  );
}

export function responseTimeout(request: SentRequest, withinMs: number): BerthError {
  return lostResponse(request, `${request.url} did not respond within ${withinMs} ms.`);
}

/** A read is safe to repeat; of a change nobody knows whether it has happened. */
function lostResponse({ requestId, reads }: SentRequest, message: string, hint?: string) {
  if (reads) return new BerthError("unavailable", message, { requestId });
  const facts = { admitted: "unknown" };
  return new BerthError("operation_interrupted", message, { requestId, facts, hint });
}

function findCause(thrown: unknown): { code?: string; syscall?: unknown } {
  let error = thrown;
  for (let depth = 0; error instanceof Error && depth < 4; depth++) {
    const { code, syscall } = error as { code?: unknown; syscall?: unknown };
    if (typeof code === "string") return { code, syscall };
    error = error.cause;
  }
  return {};
}

/** For codes that this version does not know: the code that says as much as the status does. */
function codeForStatus(status: number): ErrorCode {
  const byStatus: Record<number, ErrorCode> = {
    401: "unauthenticated",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    410: "stale_handle",
    413: "too_large",
    429: "too_many",
    501: "unsupported",
  };
  return byStatus[status] ?? (status >= 500 ? "internal" : "bad_request");
}
