/**
 * Makes the handle of one sandbox from its API methods and those that stay connected, and adds `waitUntilRunning`.
 */
import { BerthError } from "../protocol/error-codes.ts";
import type { Sandbox } from "../protocol/sandbox.ts";
import { type LiveVerbs, liveVerbs } from "./connected-verbs.ts";
import { type Cancellable, cancellable } from "./http/cancellable.ts";
import type { Clock } from "./http/http-client.ts";
import type { CallOptions, HttpClient } from "./http/request.ts";
import type { WebSocketConstructor } from "./terminal/sockets.ts";
import { type SandboxVerbs, sandboxMethods } from "./verbs.ts";

/**
 * One sandbox. `berth.sandbox(id)` returns it without a request; its methods throw `not_found` if there is no such
 * sandbox. The last argument of each API method also takes `signal` and `answerWithinMs`.
 *
 * @example
 * ```ts
 * const sandbox = berth.sandbox(id);
 * await sandbox.waitUntilRunning();
 * const { exitCode, stdout } = await sandbox.exec({ command: "npm test" }, { signal });
 * ```
 */
export interface SandboxHandle extends Cancellable<SandboxVerbs>, LiveVerbs {
  /** The id that the handle was made with. */
  readonly id: string;
  /**
   * Starts the sandbox if it is paused or has failed in a way that allows a restart, and waits until it runs. Throws
   * `start_failed`, `sandbox_destroyed`, or `unavailable` after the timeout.
   *
   * @example
   * ```ts
   * await sandbox.waitUntilRunning({ timeoutMs: 30_000, progress: ({ state }) => console.log(state) });
   * ```
   */
  waitUntilRunning(options?: WaitOptions): Promise<Sandbox>;
  /**
   * A handle of the same sandbox whose calls all have these options.
   *
   * @example
   * ```ts
   * const quick = sandbox.with({ answerWithinMs: 2_000 });
   * const { state } = await quick.get();
   * ```
   */
  with(options: CallOptions): SandboxHandle;
}

/** Options of `sandbox.waitUntilRunning`. */
export type WaitOptions = {
  /** Stops waiting. The sandbox continues to start. */
  signal?: AbortSignal;
  /** How long to wait, in ms. Default: two minutes. */
  timeoutMs?: number;
  /** Called with the state at each poll. */
  progress?: (sandbox: Sandbox) => void;
};

/** How WebSockets are opened. */
export type Sockets = { url: string; WebSocket: WebSocketConstructor | undefined };

const waitTimeoutMs = 120_000;
const pollIntervalMs = 250;

export function sandboxHandle(
  client: HttpClient,
  sockets: Sockets,
  id: string,
  clock: Clock,
): SandboxHandle {
  const verbs = cancellable(client, (over) => sandboxMethods(over, id));
  return {
    ...verbs,
    ...liveVerbs({ ...sockets, id, sandbox: verbs }),
    id,
    waitUntilRunning: (options = {}) => waitUntilRunning(verbs, clock, options),
    with: (options) => sandboxHandle(client.with(options), sockets, id, clock),
  };
}

async function waitUntilRunning(
  verbs: Cancellable<SandboxVerbs>,
  clock: Clock,
  { signal, timeoutMs = waitTimeoutMs, progress }: WaitOptions,
): Promise<Sandbox> {
  const until = clock.now() + timeoutMs;
  for (let isStarted = false; ; ) {
    // A server that does not answer ends the wait too.
    const options: CallOptions = { signal, answerWithinMs: Math.max(1, until - clock.now()) };
    const sandbox = await verbs.get(options);
    progress?.(sandbox);
    if (sandbox.state === "running") return sandbox;
    if (sandbox.state === "destroying" || sandbox.state === "destroyed")
      throw destroyedError(sandbox);
    if (sandbox.state === "failed" && (isStarted || sandbox.restartable !== true))
      throw startError(sandbox);
    if (sandbox.state === "failed" || sandbox.state === "paused") {
      await verbs.start(options);
      isStarted = true;
    }
    if (clock.now() >= until) throw timeoutError(sandbox, timeoutMs);
    await clock.sleep(Math.min(pollIntervalMs, until - clock.now()), signal);
  }
}

function destroyedError({ id, state, reason }: Sandbox): BerthError {
  return new BerthError("sandbox_destroyed", `Sandbox ${id} is ${state}.`, {
    facts: { state, ...(reason === undefined ? {} : { reason }) },
  });
}

function startError({ id, reason }: Sandbox): BerthError {
  return new BerthError("start_failed", `Sandbox ${id} did not start: ${reason ?? "failed"}.`, {
    facts: reason === undefined ? {} : { reason },
  });
}

function timeoutError({ id, state }: Sandbox, timeoutMs: number): BerthError {
  return new BerthError("unavailable", `Sandbox ${id} is ${state} after ${timeoutMs} ms.`, {
    facts: { state },
    hint: "Wait longer, or read its events with `events()`.",
  });
}
