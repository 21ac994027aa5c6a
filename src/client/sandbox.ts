/**
 * Owns the handle of one sandbox: its verbs, and what a caller wants beside them.
 * Does not own how a call is sent (link.ts), nor what stays connected (lease.ts, live-*.ts).
 */
import { BerthError } from "../protocol/error-codes.ts";
import type { Sandbox } from "../protocol/sandbox.ts";
import { type LiveVerbs, liveVerbs } from "./connected-verbs.ts";
import { type Cancellable, cancellable } from "./http/cancellable.ts";
import type { Clock } from "./http/http-client.ts";
import type { CallOptions, HttpClient } from "./http/request.ts";
import type { WebSocketConstructor } from "./terminal/sockets.ts";
import { type SandboxVerbs, verbsOf } from "./verbs.ts";

export interface SandboxHandle extends Cancellable<SandboxVerbs>, LiveVerbs {
  readonly id: string;
  /** Waits while it starts; one that is paused is started. Throws when it failed, is gone, or the time is over. */
  waitUntilRunning(options?: WaitOptions): Promise<Sandbox>;
  /** The same sandbox; all its calls have these options. */
  with(options: CallOptions): SandboxHandle;
}

export type WaitOptions = {
  signal?: AbortSignal;
  /** Two minutes unless given. */
  timeoutMs?: number;
  /** Told each time it is looked at. */
  progress?: (seen: Sandbox) => void;
};

/** Where and by what WebSockets are opened. */
export type Sockets = { url: string; WebSocket: WebSocketConstructor | undefined };

const waitMs = 120_000;
const lookEveryMs = 250;

export function sandboxHandle(
  link: HttpClient,
  sockets: Sockets,
  id: string,
  clock: Clock,
): SandboxHandle {
  const verbs = cancellable(link, (over) => verbsOf(over, id));
  return {
    ...verbs,
    ...liveVerbs({ ...sockets, id, sandbox: verbs }),
    id,
    waitUntilRunning: (options = {}) => waitUntilRunning(verbs, clock, options),
    with: (options) => sandboxHandle(link.with(options), sockets, id, clock),
  };
}

async function waitUntilRunning(
  verbs: Cancellable<SandboxVerbs>,
  clock: Clock,
  { signal, timeoutMs = waitMs, progress }: WaitOptions,
): Promise<Sandbox> {
  const until = clock.now() + timeoutMs;
  for (let isStarted = false; ; ) {
    // A server that says nothing ends the wait too.
    const options: CallOptions = { signal, answerWithinMs: Math.max(1, until - clock.now()) };
    const seen = await verbs.get(options);
    progress?.(seen);
    if (seen.state === "running") return seen;
    if (seen.state === "destroying" || seen.state === "destroyed") throw gone(seen);
    if (seen.state === "failed" && (isStarted || seen.restartable !== true)) throw failed(seen);
    if (seen.state === "failed" || seen.state === "paused") {
      await verbs.start(options);
      isStarted = true;
    }
    if (clock.now() >= until) throw late(seen, timeoutMs);
    await clock.sleep(Math.min(lookEveryMs, until - clock.now()), signal);
  }
}

function gone({ id, state, reason }: Sandbox): BerthError {
  return new BerthError("sandbox_destroyed", `Sandbox ${id} is ${state}.`, {
    facts: { state, ...(reason === undefined ? {} : { reason }) },
  });
}

function failed({ id, reason }: Sandbox): BerthError {
  return new BerthError("start_failed", `Sandbox ${id} did not come up: ${reason ?? "failed"}.`, {
    facts: reason === undefined ? {} : { reason },
  });
}

function late({ id, state }: Sandbox, timeoutMs: number): BerthError {
  return new BerthError("unavailable", `Sandbox ${id} is ${state} after ${timeoutMs} ms.`, {
    facts: { state },
    hint: "Wait longer, or look at its events.",
  });
}
