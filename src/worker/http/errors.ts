/**
 * Turns failures into HTTP responses: the body of the contract, status and headers. Unexpected failures are logged
 * with their request id and returned without details.
 */
import type { Context } from "hono";
import { asBerthError, BerthError, errorBody, errors } from "../../protocol/errors.ts";
import { type VerbName, verbs } from "../../protocol/verbs.ts";
import type { ApiEnv } from "./context.ts";

export function refuse(thrown: unknown, c: Context<ApiEnv>): Response {
  const error = asBerthError(thrown) ?? unexpected(thrown, c);
  const headers: Record<string, string> = {};
  if (error.code === "unauthenticated") headers["www-authenticate"] = "Bearer";
  if (errors[error.code].retryable) headers["retry-after"] = "1";
  return c.json(errorBody(error, c.get("requestId")), errors[error.code].status as 400, headers);
}

/** A longer path is cut in messages. */
const shownPathCharsMax = 200;

/** 405 for a path that exists with other methods, otherwise 404. */
export function noSuchRoute(c: Context<ApiEnv>): Response {
  const { method, path } = c.req;
  const allowed = methodsOf(path);
  const hint = "All routes are listed in /openapi.json.";
  const shown = path.slice(0, shownPathCharsMax);
  if (allowed.length === 0) {
    return refuse(
      new BerthError("not_found", `There is no route ${method} ${shown}.`, { hint }),
      c,
    );
  }
  const methods = allowed.join(", ");
  c.header("allow", methods);
  const message = `${shown} does not have the method ${method}, but ${methods}.`;
  return refuse(
    new BerthError("method_not_allowed", message, { hint, facts: { allow: allowed } }),
    c,
  );
}

function methodsOf(path: string): string[] {
  const parts = path.split("/");
  const names = Object.keys(verbs) as VerbName[];
  const matching = names.map((name) => verbs[name]).filter((route) => matches(route.path, parts));
  return [...new Set(matching.map((route) => route.method))];
}

function matches(pattern: string, parts: string[]): boolean {
  const expected = pattern.split("/");
  return (
    expected.length === parts.length &&
    expected.every((part, index) =>
      part.startsWith(":") ? parts[index] !== "" : part === parts[index],
    )
  );
}

/** How the runtime reports that its storage failed under an object outside of a commit: by this text, and by no flag. */
const runtimeFault = /^internal error; reference = /;
/** The same during a commit. It only makes the refusal more precise. */
const storageFull = /\bSQLITE_FULL\b/;

/** A lost or overloaded object is no fault of the caller's and passes; anything else is ours. */
function unexpected(thrown: unknown, c: Context<ApiEnv>): BerthError {
  const flags = thrown as {
    retryable?: boolean;
    overloaded?: boolean;
    durableObjectReset?: boolean;
  };
  console.error(
    JSON.stringify({
      requestId: c.get("requestId"),
      path: c.req.routePath,
      error: thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown),
    }),
  );
  if (flags?.overloaded === true) {
    return new BerthError("unavailable", "The sandbox has too many requests at once.");
  }
  const message = thrown instanceof Error ? thrown.message : "";
  const isRuntimeFault = runtimeFault.test(message);
  if (flags?.retryable === true || flags?.durableObjectReset === true || isRuntimeFault) {
    return storageFull.test(message) ? diskFull() : objectRestarted();
  }
  return new BerthError("internal", "Internal error. Search the log for the request id.");
}

function objectRestarted(): BerthError {
  const message = "The object of the sandbox restarted during the call.";
  return new BerthError("operation_interrupted", message, { facts: { admitted: "unknown" } });
}

function diskFull(): BerthError {
  return new BerthError("operation_interrupted", "The disk of this installation is full.", {
    hint: "Ask the operator to free disk space in the data folder.",
    facts: { admitted: "unknown", reason: "disk_full" },
  });
}
