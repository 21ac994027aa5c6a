/**
 * Owns how a failure is told over HTTP: the contract's shape, its status, its headers.
 * What was not expected is logged with its request id and told without detail.
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

/** For a path that exists with other methods, and for one that does not exist. */
export function noSuchRoute(c: Context<ApiEnv>): Response {
  const allowed = methodsOf(c.req.path);
  if (allowed.length === 0) {
    return refuse(
      new BerthError("not_found", "No such route.", { hint: "All routes stand in /openapi.json." }),
      c,
    );
  }
  c.header("allow", allowed.join(", "));
  return refuse(
    new BerthError("method_not_allowed", `This route takes ${allowed.join(", ")}.`, {
      facts: { allow: allowed },
    }),
    c,
  );
}

function methodsOf(path: string): string[] {
  const parts = path.split("/");
  const names = Object.keys(verbs) as VerbName[];
  const fitting = names.map((name) => verbs[name]).filter((route) => fits(route.path, parts));
  return [...new Set(fitting.map((route) => route.method))];
}

function fits(pattern: string, parts: string[]): boolean {
  const wanted = pattern.split("/");
  return (
    wanted.length === parts.length &&
    wanted.every((want, at) => (want.startsWith(":") ? parts[at] !== "" : want === parts[at]))
  );
}

/**
 * How the runtime tells that its storage failed under an object, as on a full disk, where that met no commit of its
 * own: by this text, and by no flag.
 */
const runtimeFault = /^internal error; reference = /;
/** And where it met a commit: this decides nothing, it says more of the same refusal. */
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
    return new BerthError("unavailable", "The sandbox is asked too much at once.");
  }
  const message = thrown instanceof Error ? thrown.message : "";
  const failedBelow = runtimeFault.test(message);
  if (flags?.retryable === true || flags?.durableObjectReset === true || failedBelow) {
    return storageFull.test(message) ? withoutRoom() : restarted();
  }
  return new BerthError("internal", "A fault of ours; it is in the log under this request id.");
}

function restarted(): BerthError {
  return new BerthError("operation_interrupted", "The sandbox's object was restarted meanwhile.", {
    facts: { admitted: "unknown" },
  });
}

function withoutRoom(): BerthError {
  return new BerthError("operation_interrupted", "Berth has no room left to write down the call.", {
    hint: "Whoever runs it makes room on the disk of its data folder.",
    facts: { admitted: "unknown", reason: "disk_full" },
  });
}
