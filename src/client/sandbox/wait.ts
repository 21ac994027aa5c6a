/** Waits until a sandbox runs, and starts it where it does not start by itself. */
import { BerthError } from "../../protocol/error-codes.ts";
import type { Sandbox as SandboxInfo } from "../../protocol/sandbox.ts";
import type { CallOptions } from "../http/request.ts";
import type { Target } from "../target.ts";

/** Options of `sandbox.waitUntilRunning`. */
export type WaitOptions = {
  /** Stops waiting; the sandbox continues to start. */
  signal?: AbortSignal | undefined;
  /** How long to wait, in ms. Default: 120,000. */
  timeoutMs?: number | undefined;
  /** Called with the facts at each poll. */
  progress?: ((sandbox: SandboxInfo) => void) | undefined;
};

const waitTimeoutMs = 120_000;
const pollIntervalMs = 250;

export async function waitUntilRunning(
  { sandbox: calls, clock }: Target,
  { signal, timeoutMs = waitTimeoutMs, progress }: WaitOptions,
): Promise<SandboxInfo> {
  const until = clock.now() + timeoutMs;
  for (let isStarted = false; ; ) {
    // A server that does not answer ends the wait too.
    const options: CallOptions = { signal, answerWithinMs: Math.max(1, until - clock.now()) };
    const sandbox = await calls.get(options);
    progress?.(sandbox);
    if (sandbox.state === "running") return sandbox;
    if (sandbox.state === "destroying" || sandbox.state === "destroyed") {
      throw destroyedError(sandbox);
    }
    if (sandbox.state === "failed" && (isStarted || sandbox.restartable !== true)) {
      throw startError(sandbox);
    }
    if (sandbox.state === "failed" || sandbox.state === "paused") {
      await calls.start(options);
      isStarted = true;
    }
    if (clock.now() >= until) throw timeoutError(sandbox, timeoutMs);
    await clock.sleep(Math.min(pollIntervalMs, until - clock.now()), signal);
  }
}

function destroyedError({ id, state, reason }: SandboxInfo): BerthError {
  return new BerthError("sandbox_destroyed", `Sandbox ${id} is ${state}.`, {
    facts: { state, ...(reason === undefined ? {} : { reason }) },
  });
}

function startError({ id, reason }: SandboxInfo): BerthError {
  return new BerthError("start_failed", `Sandbox ${id} did not start: ${reason ?? "failed"}.`, {
    facts: reason === undefined ? {} : { reason },
  });
}

function timeoutError({ id, state }: SandboxInfo, timeoutMs: number): BerthError {
  return new BerthError("unavailable", `Sandbox ${id} is ${state} after ${timeoutMs} ms.`, {
    facts: { state },
    hint: "Wait longer, or read its events with `sandbox.events()`.",
  });
}
