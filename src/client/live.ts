/**
 * Owns the verbs of a sandbox that stay connected: hold its lease, follow a log, attach to a terminal.
 * Does not own how each of them does it.
 */
import { type HeldLease, type HoldOptions, holdLease, type LeasePlace } from "./lease.ts";
import { type FollowOptions, followLogs, type LogEvent } from "./live-logs.ts";
import { type AttachOptions, LiveTerminal } from "./live-terminal.ts";
import { platformSocket } from "./sockets.ts";

export interface LiveVerbs {
  /** The right to change it alone, until it is released: `await using lease = await sandbox.hold({ holder })`. */
  hold(options?: HoldOptions): Promise<HeldLease>;
  /** The output of a process, from the beginning until its exit; cut connections are made up for. */
  followLogs(process: string, options?: FollowOptions): AsyncIterable<LogEvent>;
  /** To a terminal that is there. */
  attachTerminal(terminal: string, options?: AttachOptions): Promise<LiveTerminal>;
}

export function liveVerbs(given: LeasePlace): LiveVerbs {
  const place = { ...given, WebSocket: given.WebSocket ?? platformSocket() };
  return {
    hold: (options) => holdLease(place, options),
    followLogs: (process, options) => followLogs(place.sandbox, process, options),
    attachTerminal: (terminal, options) => LiveTerminal.attach(place, terminal, options),
  };
}
