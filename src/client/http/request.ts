/**
 * Describes one request: method, path, query, headers, body, and whether repeating it does harm. See http-client.ts for
 * sending it.
 */
import type { IdempotentOptions } from "../../protocol/api.ts";
import type { Upload } from "./upload.ts";

/** Options of every call. */
export type CallOptions = {
  /** Cancels the call, also while its response is streaming. */
  signal?: AbortSignal | undefined;
  /** How long the response may take, in ms, retries included; of a stream, until it begins. Default: no limit. */
  answerWithinMs?: number | undefined;
  /** How often it is sent again, instead of what `connect()` was given. */
  retries?: number | undefined;
};

/** Options of calls that change a sandbox, which one caller may hold for itself by the lease. */
export type ChangeOptions = CallOptions & {
  /** The token of the lease that the caller holds. Default: the call has a lease of its own while it runs. */
  lease?: string | undefined;
  /** How long the call may wait for its own lease while another caller holds it, in ms. Default: 0. */
  waitMs?: number | undefined;
  /** Whether the call may start a paused sandbox. Default: true. */
  wake?: boolean | undefined;
};

/** Options of calls that run at most once for all calls with the same key. */
export type RepeatableOptions = ChangeOptions & {
  /** A repeated call with the same key returns the result of the first. Default: none. */
  idempotencyKey?: string | undefined;
};

export type Query = Record<string, string | number | boolean | string[] | undefined>;

export type HttpRequest = {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  query?: Query;
  headers?: Record<string, string | undefined>;
  body?: unknown;
  upload?: Upload;
  /** Sending it twice has the effect of sending it once, so it may be repeated when its outcome is unknown. */
  isRepeatable?: boolean;
  /** How long the response may take to begin, unless the caller sets a limit. */
  responseTimeoutMs?: number;
};

/** Sends requests. */
export interface HttpClient {
  /** The content of a JSON response. */
  request<Content>(call: HttpRequest): Promise<Content>;
  /** A response whose content is streamed. */
  openStream(call: HttpRequest): Promise<Response>;
  /** A client whose calls all have these options. */
  with(options: CallOptions): HttpClient;
  /** A client whose calls have these options and none of this one's. */
  withOnly(options: CallOptions): HttpClient;
  readonly signal: AbortSignal | undefined;
}

/** Leaves out what is undefined; an array becomes a repeated parameter. */
export function encodeQuery(query: Query = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== undefined) params.append(name, String(item));
    }
  }
  const text = params.toString();
  return text === "" ? "" : `?${text}`;
}

/** Encodes a name given by the caller as one segment of a path. */
export function pathSegment(name: string): string {
  // An empty or dotted name would lead to another path.
  return name === "" || name === "." || name === ".." ? "%00" : encodeURIComponent(name);
}

/**
 * The headers and query of a call that may need the lease. With an idempotency key it runs at most once, so it may be
 * repeated.
 */
export function gatedRequest({
  lease,
  waitMs,
  wake,
  idempotencyKey,
  callId,
}: Partial<{
  [Name in keyof IdempotentOptions]: IdempotentOptions[Name] | undefined;
}>) {
  return {
    headers: {
      "berth-lease": lease,
      "berth-wait-ms": waitMs === undefined ? undefined : String(waitMs),
      "idempotency-key": idempotencyKey,
      "berth-call-id": callId,
    },
    query: { wake },
    isRepeatable: idempotencyKey !== undefined,
  };
}
