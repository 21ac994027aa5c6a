/** Runs a write to files or archives as gated work, which a drain ends, and so does a caller that disconnects. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { type GatedWork, readFence } from "../server/gated-work.ts";
import { drainBody } from "./body.ts";

/**
 * `signal` aborts when the write must stop, because its lease was lost or its caller disconnected. A check of it holds for
 * what follows in the same synchronous step.
 */
export async function runGatedWrite<T>(
  gated: GatedWork,
  request: Request,
  write: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const fence = readFence(request.headers);
  const controller = new AbortController();
  const onAbort = () => controller.abort(callerGone());
  try {
    // Checked once: a fence that rises later ends this write only by a drain.
    gated.fence.pass(fence);
    request.signal.addEventListener("abort", onAbort);
    const done = write(controller.signal);
    gated.track(Promise.allSettled([done]), { fence, controller });
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
