/**
 * Owns the form of one call on its way out: what is asked, what goes along, and whether asking twice does harm.
 * Does not own sending it: link.ts does.
 */
import type { GateOptions } from "../../protocol/api.ts";
import type { KeyedOptions } from "../../protocol/work-api.ts";
import type { Upload } from "./upload.ts";

/** What a caller may say of any call. */
export type CallOptions = {
  /** Gives the call up, also what it is still streaming. */
  signal?: AbortSignal | undefined;
  /** How long the answer may take: all of it, or of a stream until it begins. */
  answerWithinMs?: number | undefined;
};

export type Query = Record<string, string | number | boolean | string[] | undefined>;

export type Call = {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  query?: Query;
  headers?: Record<string, string | undefined>;
  body?: unknown;
  upload?: Upload;
  /** Asked twice it does what it does once, so it may be sent again when nobody knows what became of it. */
  isRepeatable?: boolean;
  /** How long the answer may take to begin, unless the caller says. */
  beginsWithinMs?: number;
};

/** How calls are made. With options of its own it is another link. */
export interface Link {
  /** The content of an answer that comes whole. */
  ask<Content>(call: Call): Promise<Content>;
  /** An answer whose content streams. */
  open(call: Call): Promise<Response>;
  with(options: CallOptions): Link;
  readonly signal: AbortSignal | undefined;
}

/** What is not given is left out. */
export function queryText(query: Query = {}): string {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined) asked.append(name, String(one));
    }
  }
  const text = asked.toString();
  return text === "" ? "" : `?${text}`;
}

/** A part of a path that a caller names. */
export function segment(name: string): string {
  // An empty or dotted one would be another path.
  return name === "" || name === "." || name === ".." ? "%00" : encodeURIComponent(name);
}

export type Gated = Pick<Call, "headers" | "query" | "isRepeatable">;

/** The headers of a gated call; one with a key runs at most once, so it may be repeated. */
export function gate({ lease, waitMs, wake, idempotencyKey }: GateOptions & KeyedOptions): Gated {
  return {
    headers: {
      "berth-lease": lease,
      "berth-wait-ms": waitMs === undefined ? undefined : String(waitMs),
      "idempotency-key": idempotencyKey,
    },
    query: { wake },
    isRepeatable: idempotencyKey !== undefined,
  };
}
