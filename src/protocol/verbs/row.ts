/** The form of one row of the table of verbs, and what rows have in common. */
import type { z } from "zod";
import type { ErrorCode } from "../error-codes.ts";
import type { Right } from "../rights.ts";

/** The module of all schemas. Rows take it as an argument, so that the SDK can have rows without the schema library. */
export type Schemas = typeof import("./schemas.ts");

/** `stream`: bytes or server-sent events. `none`: an empty body. */
export type ResponseBody = z.ZodType | "stream" | "none";

export type VerbRow = {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** `:name` marks a parameter. */
  path: string;
  /** One line: what the verb does, in the imperative. */
  summary: string;
  /** Markdown: what callers have to know beyond the summary. */
  description?: string;
  /** A request that is valid; the documentation shows it. */
  example?: { query?: Record<string, unknown>; body?: unknown };
  /** Name of the method in the SDK and over RPC, unless it is the row's own. */
  call?: string;
  /**
   * The right that a token needs; of a list, any one is enough. Left out: anyone may call it, without a key.
   * `key`: no token is enough, and `needs` names the right that the key must have. `administrator`: only a key that
   * belongs to no tenant (BERTH_ADMIN_KEYS).
   */
  right?: Right | "key" | "administrator" | readonly Right[];
  /** What a caller with a key needs as well: a key has all rights, the binding of another Worker those of its props. */
  needs?: Right | readonly Right[];
  /** While somebody holds the lease, only its holder may call this. */
  gated?: true;
  /** Runs at most once for all calls with the same Idempotency-Key. */
  idempotent?: true;
  /** Runs in the container: the agent's response is passed on as it was written. */
  agent?: true;
  /** The result where no container runs. Left out: the call is refused, or wakes the container if it is gated. */
  whenStopped?: "empty list";
  query?: z.ZodType;
  body?: z.ZodType | "bytes";
  /** The size limit of a body of bytes. */
  bodyBytesMax?: number;
  /** Takes room on the disk: refused while that is full, before anything is changed. */
  takesDisk?: true;
  /** The body may be left out. */
  optionalBody?: true;
  /** The field of the query or of the body that is an argument of its own in the SDK and over RPC. */
  argument?: string;
  /** Sending it twice has the effect of sending it once, so a client may repeat it when the response was lost. */
  repeatable?: true | ((fields: Record<string, unknown>) => boolean);
  /** How long the work may take until the response begins, if that is longer than usual. */
  responseMs?: number;
  responses: Record<number, { schema: ResponseBody; meaning: string }>;
  /** Besides those that follow from the row itself (worker/http/openapi.ts). */
  errors?: ErrorCode[];
};

/** For gated verbs, and for others that wait for a lease or end one. */
export const leaseErrors: ErrorCode[] = [
  "lease_held",
  "lease_pending",
  "lease_wait_timeout",
  "lease_lost",
];

/** For verbs that start a program. */
export const startErrors: ErrorCode[] = ["bad_cwd", "not_running", "start_failed", "too_many"];

export function response<Schema extends ResponseBody>(schema: Schema, meaning: string) {
  return { schema, meaning };
}

export const sandboxPath = "/v1/sandboxes/:id";

/** Whether the verb is a method of one sandbox. A verb without a response is a WebSocket. */
export function isSandboxMethod({ path, responses }: VerbRow): boolean {
  return path.startsWith(sandboxPath) && Object.keys(responses).length > 0;
}

/** The meaning of a response that waits for a command. */
export const slowResponse =
  "After 2 s without a result the body starts with spaces, one per second. A failure after that is an `error` object inside the 200 response.";
