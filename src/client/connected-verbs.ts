/**
 * Owns the verbs of a sandbox that stay connected: hold its lease, follow logs, events and files, attach to a terminal.
 * Does not own how each of them does it.
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
  /** The right to change it alone, until it is released: `await using lease = await sandbox.hold({ holder })`. */
  hold(options?: HoldOptions): Promise<HeldLease>;
  /** The output of a process, from the beginning until its exit; cut connections are made up for. */
  followLogs(process: string, options?: FollowOptions): AsyncIterable<LogEvent>;
  /** What happens to it, each event once and in order, until it is destroyed; cut connections are made up for. */
  followEvents(options?: FollowEventsOptions): AsyncIterable<SandboxEvent>;
  /** What changes below a folder, until that goes; what a cut connection may have hidden is told as missed. */
  followFiles(options?: WatchOptions): AsyncIterable<FileEvent>;
  /** Clones a repository, and answers once it is there. */
  clone(call: CloneInput, options?: CloneOptions): Promise<Cloned>;
  /** To a terminal that is there. */
  attachTerminal(terminal: string, options?: AttachOptions): Promise<LiveTerminal>;
}

export function liveVerbs(given: SandboxTarget): LiveVerbs {
  const place = { ...given, WebSocket: given.WebSocket ?? platformSocket() };
  return {
    hold: (options) => holdLease(place, options),
    followLogs: (process, options) => followLogs(place.sandbox, process, options),
    followEvents: (options) => followEvents<SandboxEvent>(place.sandbox, options),
    followFiles: (options) => followFiles(place.sandbox, options),
    clone: (call, options) => clone(place.sandbox, call, options),
    attachTerminal: (terminal, options) => LiveTerminal.attach(place, terminal, options),
  };
}
