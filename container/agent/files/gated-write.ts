/**
 * Owns a write's place among the work that a lease gates: it is tracked while it runs, and a drain ends it.
 * Does not own what is written. Also of archives.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { fenceOf } from "../server/fence.ts";
import type { GatedWork } from "../server/gated-work.ts";
import { readOut } from "./unread-body.ts";

export type Turn = {
  /**
   * Throws where the write must not go on: its lease was lost, or its caller has gone. What follows in the same
   * synchronous piece cannot be overtaken.
   */
  pass(): void;
  signal: AbortSignal;
};

export async function inTurn<T>(
  gated: GatedWork,
  request: Request,
  work: (turn: Turn) => Promise<T>,
): Promise<T> {
  const fence = fenceOf(request.headers);
  const gone = new AbortController();
  const onAbort = () => gone.abort(callerGone());
  try {
    // Once: a fence that grows later without a drain means others, and this goes on counting below it.
    gated.fence.pass(fence);
  } catch (error) {
    await readOut(request);
    throw error;
  }
  const pass = () => gone.signal.throwIfAborted();
  request.signal.addEventListener("abort", onAbort);
  const done = work({ pass, signal: gone.signal });
  const over = done.then(
    () => {},
    () => {},
  );
  gated.track(over, { fence, gone });
  try {
    return await done;
  } catch (error) {
    await readOut(request);
    throw error;
  } finally {
    request.signal.removeEventListener("abort", onAbort);
  }
}

function callerGone(): BerthError {
  return new BerthError("operation_interrupted", "the caller went away; nothing was written", {
    facts: { admitted: true, reason: "caller_gone" },
  });
}
