/**
 * Owns the shape in which an object answers over RPC: an expected failure is a value, not a thrown error.
 * Does not own how callers are told: the door makes HTTP of it, the RPC entry a thrown error.
 */
import type { BerthError, ErrorCode, ErrorFacts } from "../../protocol/errors.ts";

export type Refused = { code: ErrorCode; message: string; hint?: string; facts: ErrorFacts };

export type Answer<T> = { ok: T } | { refused: Refused };

export function refused(error: BerthError): { refused: Refused } {
  const { code, message, hint, facts } = error;
  return { refused: { code, message, facts, ...(hint === undefined ? {} : { hint }) } };
}

/** An answer of REST. A short one is told as its text: a stream over RPC is a sixth of what an exec costs here. */
export type Reply = Response | { status: number; json: string };
