/** Runs a write to files or archives as gated work, which a drain ends, and so does a caller that disconnects. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { readFence } from "../server/fence.ts";
import type { GatedWork } from "../server/gated-work.ts";
import { drainBody } from "./body.ts";

export type GatedWrite = {
  /**
   * Throws if the write must stop, because its lease was lost or its caller disconnected. The check holds for what
   * follows in the same synchronous step.
   */
  throwIfEnded(): void;
  signal: AbortSignal;
};

export async function runGatedWrite<T>(
  gated: GatedWork,
  request: Request,
  work: (write: GatedWrite) => Promise<T>,
): Promise<T> {
  const fence = readFence(request.headers);
  const controller = new AbortController();
  const { signal } = controller;
  const onAbort = () => controller.abort(callerGone());
  try {
    // Checked once: a fence that rises later ends this write only by a drain.
    gated.fence.pass(fence);
  } catch (error) {
    await drainBody(request);
    throw error;
  }
  request.signal.addEventListener("abort", onAbort);
  const done = work({ throwIfEnded: () => signal.throwIfAborted(), signal });
  gated.track(Promise.allSettled([done]), { fence, controller });
  try {
    return await done;
  } catch (error) {
    await drainBody(request);
    throw error;
  } finally {
    request.signal.removeEventListener("abort", onAbort);
  }
}

function callerGone(): BerthError {
  return new BerthError("operation_interrupted", "The caller disconnected. Nothing was written.", {
    facts: { admitted: true, reason: "caller_gone" },
  });
}
