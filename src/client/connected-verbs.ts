/**
 * Adds the methods that stay connected to a sandbox: they hold its lease, follow logs, events and files, clone, or
 * attach to a terminal.
 */

import type { Cloned, CloneInput } from "../protocol/git.ts";
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

export function liveVerbs(config: SandboxTarget): LiveVerbs {
  const target = { ...config, WebSocket: config.WebSocket ?? platformSocket() };
  return {
    hold: (options) => holdLease(target, options),
    followLogs: (process, options) => followLogs(target.sandbox, process, options),
    followEvents: (options) => followEvents<SandboxEvent>(target.sandbox, options),
    followFiles: (options) => followFiles(target.sandbox, options),
    clone: (call, options) => clone(target.sandbox, call, options),
    attachTerminal: (terminal, options) => LiveTerminal.attach(target, terminal, options),
  };
}
