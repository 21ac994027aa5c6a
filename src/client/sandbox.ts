/**
 * Makes the handle of one sandbox from its API methods and those that stay connected, and adds `waitUntilRunning`.
 */
import { BerthError } from "../protocol/error-codes.ts";
import type { Cloned, CloneInput } from "../protocol/file.ts";
import type { Sandbox } from "../protocol/sandbox.ts";
import { cancellable } from "./http/cancellable.ts";
import type { Clock } from "./http/http-client.ts";
import type { CallOptions, HttpClient } from "./http/request.ts";
import { type HeldLease, type HoldOptions, holdLease } from "./lease/lease.ts";
import { type FollowEventsOptions, followEvents, type SandboxEvent } from "./streams/events.ts";
import {
  type CloneOptions,
  clone,
  type FileEvent,
  followFiles,
  type WatchOptions,
} from "./streams/files.ts";
import { type FollowOptions, followLogs, type LogEvent } from "./streams/logs.ts";
import { platformSocket, type SandboxTarget } from "./terminal/sockets.ts";
import { type AttachOptions, LiveTerminal } from "./terminal/terminal.ts";
import { type SandboxCalls, sandboxMethods } from "./verbs.ts";

/**
 * The methods of a sandbox that stay connected until they are done. All but `clone` reconnect by themselves after a lost
 * connection.
 */
export interface LiveVerbs {
  /**
   * Waits for the lease, and keeps it until it is released or lost. Throws `lease_wait_timeout` if it is not granted
   * within `waitMs`.
   *
   * @example
   * ```ts
   * await using lease = await sandbox.hold({ holder: "deploy", waitMs: 60_000 });
   * await sandbox.exec({ command: "make" }, { lease: lease.token, signal: lease.signal });
   * ```
   */
  hold(options?: HoldOptions): Promise<HeldLease>;
  /**
   * The output of a process, from its start or from a cursor, until it exits. Reconnects without loss.
   *
   * @example
   * ```ts
   * const { id } = await sandbox.startProcess({ command: "npm test" });
   * for await (const event of sandbox.followLogs(id)) {
   *   if (event.type === "output") process.stdout.write(event.bytes);
   * }
   * ```
   */
  followLogs(process: string, options?: FollowOptions): AsyncIterable<LogEvent>;
  /**
   * The events of the sandbox, each once and in order, until it is destroyed. After a lost connection it continues with
   * the next event; a `gap` says that some are no longer stored.
   *
   * @example
   * ```ts
   * for await (const next of sandbox.followEvents({ after: lastSeq })) {
   *   if (next.type === "event") console.log(next.seq, next.event);
   * }
   * ```
   */
  followEvents(options?: FollowEventsOptions): AsyncIterable<SandboxEvent>;
  /**
   * The changes below a folder, until the folder is removed. After a lost connection a `missed` event says that changes
   * may be missing: list the folder again.
   */
  followFiles(options?: WatchOptions): AsyncIterable<FileEvent>;
  /** Clones a repository into the sandbox, and resolves when it is complete. `progress` is called as it proceeds. */
  clone(call: CloneInput, options?: CloneOptions): Promise<Cloned>;
  /**
   * Attaches to an existing terminal: iterate over the result for its output, and call `write` for input. After a lost
   * connection it continues where it was, or with the current screen.
   *
   * @example
   * ```ts
   * const { id } = await sandbox.createTerminal();
   * await using terminal = await sandbox.attachTerminal(id);
   * terminal.write(new TextEncoder().encode("ls\n"));
   * ```
   */
  attachTerminal(terminal: string, options?: AttachOptions): Promise<LiveTerminal>;
}

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
export interface SandboxHandle extends SandboxCalls, LiveVerbs {
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
export type Sockets = Pick<SandboxTarget, "url" | "WebSocket">;

const waitTimeoutMs = 120_000;
const pollIntervalMs = 250;

export function sandboxHandle(
  client: HttpClient,
  sockets: Sockets,
  id: string,
  clock: Clock,
): SandboxHandle {
  const verbs = cancellable(client, (over) => sandboxMethods(over, id));
  const WebSocket = sockets.WebSocket ?? platformSocket();
  const target: SandboxTarget = { url: sockets.url, id, sandbox: verbs, WebSocket };
  return {
    ...verbs,
    id,
    hold: (options) => holdLease(target, options),
    followLogs: (process, options) => followLogs(verbs, process, options),
    followEvents: (options) => followEvents<SandboxEvent>(verbs, options),
    followFiles: (options) => followFiles(verbs, options),
    clone: (call, options) => clone(verbs, call, options),
    attachTerminal: (terminal, options) => LiveTerminal.attach(target, terminal, options),
    waitUntilRunning: (options = {}) => waitUntilRunning(verbs, clock, options),
    with: (options) => sandboxHandle(client.with(options), sockets, id, clock),
  };
}

async function waitUntilRunning(
  verbs: SandboxCalls,
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
    if (sandbox.state === "destroying" || sandbox.state === "destroyed") {
      throw destroyedError(sandbox);
    }
    if (sandbox.state === "failed" && (isStarted || sandbox.restartable !== true)) {
      throw startError(sandbox);
    }
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
