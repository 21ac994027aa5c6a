/**
 * The methods of a sandbox that stay connected: hold its lease, follow logs, events and files, attach to a terminal.
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

export interface LiveVerbs {
  /** Acquires the lease and keeps it until it is released: `await using lease = await sandbox.hold({ holder })`. */
  hold(options?: HoldOptions): Promise<HeldLease>;
  /** The output of a process from its start to its exit. Reconnects without loss. */
  followLogs(process: string, options?: FollowOptions): AsyncIterable<LogEvent>;
  /** The events of the sandbox, each once and in order, until it is destroyed. Reconnects without loss. */
  followEvents(options?: FollowEventsOptions): AsyncIterable<SandboxEvent>;
  /** The changes below a folder until it is removed. After a lost connection an event says that changes may be missing. */
  followFiles(options?: WatchOptions): AsyncIterable<FileEvent>;
  /** Clones a repository, and returns when it is complete. */
  clone(call: CloneInput, options?: CloneOptions): Promise<Cloned>;
  /** Attaches to an existing terminal. */
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
