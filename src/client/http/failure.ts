/**
 * Owns what a failed call is told as: the error of the answer, or of a connection that failed, in the one table's codes.
 * Never says that something ran, or that it did not, unless that is known.
 */
import {
  BerthError,
  type ErrorBody,
  type ErrorCode,
  type ErrorFacts,
  errors,
} from "../../protocol/error-codes.ts";

/** Of what is known of the call that failed. */
export type Sent = { requestId: string; url: string; reads: boolean };

export function failureOf(body: ErrorBody, status: number): BerthError {
  const { code, message, hint, retryable: _retryable, ...facts } = body.error;
  const known = Object.hasOwn(errors, code);
  return new BerthError(known ? code : closest(status), message, {
    facts: known ? (facts as ErrorFacts) : { ...(facts as ErrorFacts), told: String(code) },
    ...(hint === undefined ? {} : { hint }),
    requestId: body.requestId,
  });
}

export function isErrorBody(body: unknown): body is ErrorBody {
  const error = (body as Partial<ErrorBody> | null | undefined)?.error;
  return typeof error === "object" && error !== null && typeof error.message === "string";
}

/** Somebody on the way answered, in words that are not Berth's. */
export function foreignAnswer({ requestId, url, reads }: Sent, status: number): BerthError {
  if (status >= 500) {
    const message = `Something before Berth answered ${status}.`;
    return reads
      ? new BerthError("unavailable", message, { requestId })
      : new BerthError("operation_interrupted", message, {
          requestId,
          facts: { admitted: "unknown" },
        });
  }
  return new BerthError(closest(status), `${url} answered ${status}, but not as Berth does.`, {
    requestId,
    hint: "Look at the `url` given to connect(): it must lead to Berth's own door.",
  });
}

/** These say that the connection never came about: nothing was sent. */
const neverSent = new Set([
  ...["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"],
  "UND_ERR_CONNECT_TIMEOUT",
]);

export function connectionFailure(thrown: unknown, { requestId, url, reads }: Sent): BerthError {
  const { code, syscall } = causeOf(thrown);
  const why = code === undefined ? "" : ` (${code})`;
  // A connection that stood ends with the same codes: then it was in a read or a write.
  const wasOpen = syscall === "read" || syscall === "write";
  if (reads || (code !== undefined && neverSent.has(code) && !wasOpen)) {
    return new BerthError("unavailable", `${url} could not be reached${why}.`, {
      requestId,
      hint: "Look whether Berth runs there, and whether the `url` given to connect() is right.",
    });
  }
  return new BerthError(
    "operation_interrupted",
    `The connection to ${url} broke off before the answer${why}.`,
    {
      requestId,
      facts: { admitted: "unknown" },
      hint: "It may have run. Calls with an `idempotencyKey` are repeated without running twice.",
    },
  );
}

export function noAnswer({ requestId, url, reads }: Sent, withinMs: number): BerthError {
  const message = `${url} gave no answer for ${withinMs} ms.`;
  return reads
    ? new BerthError("unavailable", message, { requestId })
    : new BerthError("operation_interrupted", message, {
        requestId,
        facts: { admitted: "unknown" },
      });
}

type Cause = { code?: string; syscall?: unknown };

function causeOf(thrown: unknown): Cause {
  for (let at = thrown, depth = 0; at instanceof Error && depth < 4; at = at.cause, depth++) {
    const { code, syscall } = at as { code?: unknown; syscall?: unknown };
    if (typeof code === "string") return { code, syscall };
  }
  return {};
}

/** For codes that this version does not know: the same status says as much as can be said. */
function closest(status: number): ErrorCode {
  if (status === 501) return "unsupported";
  if (status >= 500) return "internal";
  const same: Record<number, ErrorCode> = {
    401: "unauthenticated",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    410: "stale_handle",
    413: "too_large",
    429: "too_many",
  };
  return same[status] ?? "bad_request";
}
