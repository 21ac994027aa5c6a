/**
 * Owns the one table of error codes: status, whether a retry may help, the command's exit code, the meaning.
 * Does not own messages: whoever refuses says what, which and why. Nor the schema (errors.ts): the agent takes
 * this file alone, because each running agent would pay megabytes for the library of schemas.
 */
type Row = { status: number; retryable: boolean; exitCode: number; meaning: string };

export const errors = {
  bad_request: row(400, false, "The request is not of the route's form; `field` names the place."),
  bad_json: row(400, false, "The body is not JSON."),
  bad_cwd: row(400, false, "The working folder does not exist or is no folder; nothing was run."),
  unauthenticated: row(401, false, "No key, or one that is not known here."),
  forbidden: row(403, false, "The key lacks the right that the call needs."),
  not_found: row(404, false, "No such route, or no such sandbox for this key."),
  method_not_allowed: row(405, false, "The route exists with other methods; see `Allow`."),
  body_timeout: row(408, true, "The body did not arrive in time."),
  not_running: row(
    409,
    false,
    "The sandbox has no running container and the call may not start it.",
  ),
  start_failed: row(409, false, "The container did not come up; the reason stands in the sandbox."),
  stale_fence: row(409, false, "The call carries a fence below one that the agent has seen."),
  stale_handle: row(410, false, "The handle belongs to an earlier life of the container."),
  result_gone: row(410, false, "The command ran; what it wrote is no longer kept. `exitCode` is."),
  session_terminated: row(
    410,
    false,
    "The session has ended; `reason` and `exitCode` say how. Create it anew.",
  ),
  idempotency_mismatch: row(409, false, "The key was used before, with another call."),
  stdin_gap: row(
    409,
    false,
    "The bytes begin after what was taken so far; `offset` says how much.",
  ),
  stdin_closed: row(409, false, "The process takes no more input; `offset` says how much it took."),
  name_taken: row(409, false, "A process with this name runs; `id` names it. Nothing was started."),
  lease_busy: row(409, true, "Calls of this lease are still running."),
  scope_taken: row(409, false, "The scope has a sandbox already; `sandbox` names it."),
  in_other_plan: row(409, false, "A sandbox is in at most one plan; `plan` names it."),
  plan_busy: row(409, true, "A commit or rollback of the plan runs; `commit` is its number."),
  nothing_to_commit: row(409, false, "No member has changed since its last commit."),
  nothing_to_roll_back: row(409, false, "No member was ever committed."),
  stale_run: row(409, false, "The plan is past the run that this step belongs to."),
  file_exists: row(409, false, "Something is there already; nothing was changed."),
  not_a_file: row(400, false, "The path leads to a folder, a device or the like, not to a file."),
  not_a_folder: row(400, false, "The path, or a part of it, is no folder."),
  not_empty: row(409, false, "The folder is not empty; `recursive` removes it with what it holds."),
  file_forbidden: row(403, false, "A command of the sandbox may not do that to this file either."),
  file_not_found: row(404, false, "Nothing is at this path."),
  disk_full: row(507, false, "There is no room left for it; nothing was changed."),
  file_changed: row(412, false, "The file is not, or no more, what the condition names."),
  bad_range: row(416, false, "The range lies outside of the file."),
  bad_archive: row(400, false, "The archive is broken or holds what may not be unpacked."),
  clone_failed: row(422, false, "git could not clone; the message says why."),
  checkpoint_in_use: row(409, false, "A pause or a plan still needs the checkpoint."),
  checkpoint_expired: row(410, false, "The checkpoint is no longer kept."),
  lease_lost: row(410, false, "The lease has ended; `reason` says how."),
  version_mismatch: row(412, false, "The metadata has another version than `If-Match` names."),
  lease_held: row(423, true, "Somebody else holds the lease; `holder` says who."),
  lease_pending: row(423, true, "The lease is about to go to somebody who waits for it."),
  lease_wait_timeout: row(423, true, "The lease was not granted within the caller's patience."),
  upgrade_required: row(426, false, "The route is a WebSocket: send `Upgrade: websocket`."),
  precondition_required: row(428, false, "The call needs `If-Match`."),
  queue_full: row(429, true, "Too many wait for the lease."),
  sandbox_destroyed: row(410, false, "The sandbox is gone; its id is never used again."),
  too_large: row(413, false, "The body is larger than the route takes."),
  unsupported_type: row(415, false, "The body's content type or encoding is not taken."),
  too_many: row(429, true, "A limit on how many at once is met."),
  internal: row(500, false, "A fault of ours; the request id finds it in the log."),
  unsupported: row(501, false, "This installation cannot do that; the message says why."),
  operation_interrupted: row(
    502,
    false,
    "The container was lost; `admitted` says if the work began.",
  ),
  port_unreachable: row(502, true, "Nothing in the sandbox answers on that port."),
  unavailable: row(503, true, "Not now: nothing was done, try again."),
} as const satisfies Record<string, Row>;

export type ErrorCode = keyof typeof errors;

export type ErrorFacts = Record<string, string | number | boolean | string[] | null>;

export type ErrorBody = {
  error: { code: ErrorCode; message: string; hint?: string; retryable: boolean } & ErrorFacts;
  requestId: string;
};

/** An expected failure. It crosses RPC as a plain Error with these properties: switch on `code`. */
export class BerthError extends Error {
  readonly code: ErrorCode;
  readonly facts: ErrorFacts;
  readonly hint: string | undefined;
  /** Of the call that failed, where it came over the network: finds it in the log. */
  readonly requestId: string | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    options: { hint?: string; facts?: ErrorFacts; requestId?: string } = {},
  ) {
    super(message);
    this.name = "BerthError";
    this.code = code;
    this.hint = options.hint;
    this.facts = options.facts ?? {};
    this.requestId = options.requestId;
  }
}

/** Reads an error that may have lost its class on the way (RPC keeps only name, message, properties). */
export function asBerthError(thrown: unknown): BerthError | undefined {
  if (thrown instanceof BerthError) return thrown;
  if (!(thrown instanceof Error) || !("code" in thrown)) return undefined;
  const { code, hint, facts } = thrown as Partial<BerthError>;
  if (typeof code !== "string" || !Object.hasOwn(errors, code)) return undefined;
  return new BerthError(code, thrown.message, {
    ...(typeof hint === "string" ? { hint } : {}),
    ...(typeof facts === "object" && facts !== null ? { facts } : {}),
  });
}

/** The same words for an invented id and for a foreign one: nobody learns which ids exist. */
export function unknownSandbox(): BerthError {
  return new BerthError("not_found", "No such sandbox for this key.", {
    hint: "Ids are given by POST /v1/sandboxes.",
  });
}

export function errorBody(error: BerthError, requestId: string): ErrorBody {
  const { retryable } = errors[error.code];
  const hint = error.hint === undefined ? {} : { hint: error.hint };
  return {
    error: { ...error.facts, code: error.code, message: error.message, ...hint, retryable },
    requestId,
  };
}

function row(status: number, retryable: boolean, meaning: string): Row {
  return { status, retryable, exitCode: 1, meaning };
}
