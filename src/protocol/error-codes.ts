/**
 * The table of error codes: status, whether a retry may help, and the meaning. Messages are written where the error
 * is thrown. The schema is in errors.ts, because the agent loads this file and must not load the schema library.
 */
type ErrorRow = { status: number; retryable: boolean; meaning: string };

export const errors = {
  bad_request: row(400, "The request is not valid; `field` names the field."),
  bad_json: row(400, "The body is not JSON."),
  bad_cwd: row(400, "The working folder does not exist or is not a folder; nothing was run."),
  unauthenticated: row(401, "The key is missing or unknown."),
  forbidden: row(403, "The key lacks the right that the call needs."),
  not_found: row(404, "No such route, or no such sandbox for this key."),
  method_not_allowed: row(405, "The route does not have this method; see `Allow`."),
  body_timeout: passing(408, "The body did not arrive in time."),
  not_running: row(409, "The sandbox has no running container, and the call must not start one."),
  start_failed: row(409, "The container did not start; `reason` of the sandbox says why."),
  stale_fence: row(409, "The fence of the call is below the highest that the agent has seen."),
  stale_handle: row(410, "The id belongs to an earlier run of the container."),
  result_gone: row(410, "The command ran, but its output is no longer stored; `exitCode` is."),
  session_terminated: row(
    410,
    "The session has ended; `reason` and `exitCode` say how. Create it again.",
  ),
  idempotency_mismatch: row(409, "The idempotency key was used for another call."),
  stdin_gap: row(
    409,
    "The bytes start after the end of what was accepted; `offset` says where that is.",
  ),
  stdin_closed: row(409, "The process accepts no more input; `offset` says how much it accepted."),
  name_taken: row(409, "A process with this name runs; `id` names it. Nothing was started."),
  lease_busy: passing(409, "Calls of this lease are still running."),
  scope_taken: row(409, "The scope has a sandbox already; `sandbox` names it."),
  in_other_plan: row(409, "A sandbox is in at most one plan; `plan` names it."),
  plan_busy: passing(409, "A commit or rollback of the plan runs; `commit` is its number."),
  template_busy: passing(409, "A build of the template runs; `build` is its id."),
  nothing_to_commit: row(409, "No member has changed since its last commit."),
  nothing_to_roll_back: row(409, "No member has ever been committed."),
  stale_run: row(409, "The plan is past the run that this step belongs to."),
  file_exists: row(409, "The path exists; nothing was changed."),
  not_a_file: row(400, "The path is a folder, a device or similar, not a file."),
  not_a_folder: row(400, "The path, or a part of it, is not a folder."),
  not_empty: row(409, "The folder is not empty; `recursive` removes it with its contents."),
  file_forbidden: row(403, "The user of the sandbox has no permission for this."),
  file_not_found: row(404, "The path does not exist."),
  disk_full: row(507, "The disk is full; nothing was changed."),
  file_changed: row(412, "The file does not match the condition."),
  bad_range: row(416, "The range lies outside of the file."),
  bad_archive: row(400, "The archive is broken or has members that cannot be unpacked."),
  clone_failed: row(422, "git could not clone; the message says why."),
  checkpoint_in_use: row(409, "A pause or a plan still needs the checkpoint."),
  checkpoint_expired: row(410, "The checkpoint has expired."),
  lease_lost: row(410, "The lease has ended; `reason` says how."),
  version_mismatch: row(
    412,
    "The metadata or the settings have another version than the call names.",
  ),
  lease_held: passing(423, "The lease is held; `holder` names the holder."),
  lease_pending: passing(
    423,
    "The lease cannot be granted yet: it is offered to a waiter, is being drained, or other calls are in flight.",
  ),
  lease_wait_timeout: passing(423, "The lease was not granted within `waitMs`."),
  upgrade_required: row(426, "The route needs a WebSocket: send `Upgrade: websocket`."),
  precondition_required: row(428, "The call needs `If-Match`."),
  queue_full: passing(429, "The queue for the lease is full."),
  sandbox_destroyed: row(410, "The sandbox was destroyed; its id is never used again."),
  too_large: row(413, "The body is larger than the limit."),
  url_too_long: row(414, "The address is longer than can be passed on to the sandbox."),
  headers_too_large: row(
    431,
    "The headers are more, or longer, than can be passed on to the sandbox.",
  ),
  unsupported_type: row(415, "The content type or encoding of the body is not supported."),
  too_many: passing(429, "A limit on concurrent calls or objects is reached."),
  internal: row(500, "Internal error. Search the log for the request id."),
  unsupported: row(501, "This installation cannot do that; the message says why."),
  operation_interrupted: row(
    502,
    "The work was cut short; `reason` says why, and `admitted` whether it had started.",
  ),
  port_unreachable: passing(502, "No server in the sandbox responds on this port."),
  unavailable: passing(503, "Temporarily unavailable: nothing was done, so try again."),
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof errors;

export type ErrorFacts = Record<string, string | number | boolean | string[] | null>;

export type ErrorBody = {
  error: { code: ErrorCode; message: string; hint?: string; retryable: boolean } & ErrorFacts;
  requestId: string;
};

/** An expected failure. It crosses RPC as a plain Error with these properties: switch on `code`. */
export class BerthError extends Error {
  readonly code: ErrorCode;
  /** Details that depend on the code, such as `field` or `holder`. */
  readonly facts: ErrorFacts;
  /** What the caller can do next. */
  readonly hint: string | undefined;
  /** The id of the failed call if it came over the network; the log has it. */
  readonly requestId: string | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    options: {
      hint?: string | undefined;
      facts?: ErrorFacts;
      requestId?: string | undefined;
    } = {},
  ) {
    super(message);
    this.name = "BerthError";
    this.code = code;
    this.hint = options.hint;
    this.facts = options.facts ?? {};
    this.requestId = options.requestId;
  }
}

/** Restores an error that lost its class over RPC, which keeps only name, message and properties. */
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

/** The same error for an unknown id and for one of another tenant, so that callers do not learn which ids exist. */
export function unknownSandbox(): BerthError {
  return new BerthError("not_found", "No such sandbox for this key.", {
    hint: "GET /v1/sandboxes lists your sandboxes.",
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

function row(status: number, meaning: string): ErrorRow {
  return { status, retryable: false, meaning };
}

/** The reason may pass, so the same call may succeed later. */
function passing(status: number, meaning: string): ErrorRow {
  return { status, retryable: true, meaning };
}
