/** Errors in the form of E2B's wire: a numeric code and a message. */
import { type ErrorCode, errors } from "../../protocol/error-codes.ts";
import { ApiRefusal } from "../api-calls.ts";
import { type ConnectCode, ConnectError } from "./connect-framing.ts";

export class WireError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }

  response(): Response {
    const headers = this.status === 429 || this.status === 503 ? { "retry-after": "1" } : undefined;
    const body = { code: this.status, message: this.message };
    return Response.json(body, { status: this.status, ...(headers && { headers }) });
  }
}

const asStatus: Partial<Record<ErrorCode, number>> = {
  sandbox_destroyed: 404,
  checkpoint_expired: 404,
  lease_held: 409,
  lease_pending: 409,
};

export function toWireError(thrown: unknown): WireError | undefined {
  if (thrown instanceof WireError) return thrown;
  if (!(thrown instanceof ApiRefusal)) return undefined;
  return new WireError(asStatus[thrown.code] ?? errors[thrown.code].status, thrown.message);
}

/** The sandbox itself cannot serve the daemon's calls: clients take 502 as the sign that it has ended. */
const sandboxGone: readonly ErrorCode[] = ["sandbox_destroyed", "not_running", "start_failed"];

export function isSandboxGone(thrown: unknown): boolean {
  if (!(thrown instanceof ApiRefusal)) return false;
  const isUnknown = thrown.code === "not_found" && thrown.message.startsWith("No such sandbox");
  return isUnknown || sandboxGone.includes(thrown.code);
}

export function sandboxGoneResponse(sandboxId: string): Response {
  const body = { sandboxId, message: "The sandbox was not found", code: 502 };
  return Response.json(body, { status: 502 });
}

const connectCodes: Partial<Record<ErrorCode, ConnectCode>> = {
  file_not_found: "not_found",
  not_found: "not_found",
  stale_handle: "not_found",
  file_exists: "already_exists",
  name_taken: "already_exists",
  file_forbidden: "permission_denied",
  forbidden: "permission_denied",
  unauthenticated: "unauthenticated",
  disk_full: "resource_exhausted",
  too_many: "resource_exhausted",
  too_large: "resource_exhausted",
  unsupported: "unimplemented",
  unavailable: "unavailable",
  operation_interrupted: "unavailable",
  internal: "internal",
};

export function toConnectError(thrown: unknown): ConnectError | undefined {
  if (thrown instanceof ConnectError) return thrown;
  if (!(thrown instanceof ApiRefusal)) return undefined;
  const { status } = errors[thrown.code];
  const code = connectCodes[thrown.code] ?? (status < 500 ? "invalid_argument" : "internal");
  return new ConnectError(code, thrown.message);
}
