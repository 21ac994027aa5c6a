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

export function toBerthError(body: ErrorBody, status: number): BerthError {
  const { code, message, hint, retryable: _retryable, ...facts } = body.error;
  const known = Object.hasOwn(errors, code);
  return new BerthError(known ? code : codeForStatus(status), message, {
    facts: known ? (facts as ErrorFacts) : { ...(facts as ErrorFacts), told: String(code) },
    ...(hint === undefined ? {} : { hint }),
    requestId: body.requestId,
  });
}

export function isErrorBody(body: unknown): body is ErrorBody {
  const error = (body as Partial<ErrorBody> | null | undefined)?.error;
  return typeof error === "object" && error !== null && typeof error.message === "string";
}

/** The response is not Berth's: a proxy or another server sent it. */
export function foreignResponse(
  { requestId, url, reads }: SentRequest,
  status: number,
): BerthError {
  if (status >= 500) {
    const message = `A proxy in front of Berth responded with status ${status}.`;
    return reads
      ? new BerthError("unavailable", message, { requestId })
      : new BerthError("operation_interrupted", message, {
          requestId,
          facts: { admitted: "unknown" },
        });
  }
  return new BerthError(
    codeForStatus(status),
    `${url} responded with status ${status}, but not as Berth does.`,
    {
      requestId,
      hint: "Check the `url` given to connect(): it must be the address of Berth.",
    },
  );
}

/** These codes mean that no connection was made, so nothing was sent. */
const neverSent = new Set([
  ...["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"],
  "UND_ERR_CONNECT_TIMEOUT",
]);

export function connectionFailure(
  thrown: unknown,
  { requestId, url, reads }: SentRequest,
): BerthError {
  const { code, syscall } = findCause(thrown);
  const reason = code === undefined ? "" : ` (${code})`;
  // A connection that was open fails with the byStatus codes, but in a read or a write.
  const wasOpen = syscall === "read" || syscall === "write";
  if (reads || (code !== undefined && neverSent.has(code) && !wasOpen)) {
    return new BerthError("unavailable", `${url} could not be reached${reason}.`, {
      requestId,
      hint: "Check that Berth runs there and that the `url` given to connect() is right.",
    });
  }
  return new BerthError(
    "operation_interrupted",
    `The connection to ${url} was lost before the response${reason}.`,
    {
      requestId,
      facts: { admitted: "unknown" },
      hint: "The call may have taken effect. Calls with an `idempotencyKey` are repeated without running twice.",
    },
  );
}

export function responseTimeout(
  { requestId, url, reads }: SentRequest,
  withinMs: number,
): BerthError {
  const message = `${url} did not respond within ${withinMs} ms.`;
  return reads
    ? new BerthError("unavailable", message, { requestId })
    : new BerthError("operation_interrupted", message, {
        requestId,
        facts: { admitted: "unknown" },
      });
}

type Cause = { code?: string; syscall?: unknown };

function findCause(thrown: unknown): Cause {
  for (
    let error = thrown, depth = 0;
    error instanceof Error && depth < 4;
    error = error.cause, depth++
  ) {
    const { code, syscall } = error as { code?: unknown; syscall?: unknown };
    if (typeof code === "string") return { code, syscall };
  }
  return {};
}

/** For codes that this version does not know: the code that says as much as the status does. */
function codeForStatus(status: number): ErrorCode {
  if (status === 501) return "unsupported";
  if (status >= 500) return "internal";
  const byStatus: Record<number, ErrorCode> = {
    401: "unauthenticated",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    410: "stale_handle",
    413: "too_large",
    429: "too_many",
  };
  return byStatus[status] ?? "bad_request";
}
