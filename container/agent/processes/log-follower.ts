/**
 * Follows the log of a process for one connection: how far it goes, when it has everything, and how many may follow.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { LogReader } from "./log-reader.ts";
import type { Process } from "./process.ts";
import type { Stream } from "./runs.ts";

export type FollowOptions = {
  after: number;
  follow: boolean;
  stream: Stream | undefined;
  form: "bytes" | "events";
  /** Connections with the same id belong to one reader; a new one replaces the earlier one. */
  readerId: string | undefined;
};

export class LogFollower {
  readonly process: Process;
  readonly reader: LogReader;
  readonly form: FollowOptions["form"];
  /** Ends before this cursor; infinite for one that follows. */
  readonly end: number;
  /** Cuts the connection off when another one takes its place. */
  onEvicted: (() => void) | undefined;
  #lastSentAt = performance.now();
  #isClosed = false;

  constructor(process: Process, { after, follow, stream, form, readerId }: FollowOptions) {
    const { followers, log } = process;
    if (readerId !== undefined) {
      for (const other of [...followers]) if (other.reader.id === readerId) other.evict();
    }
    evictIfFull(followers);
    this.process = process;
    this.form = form;
    this.end = follow ? Number.POSITIVE_INFINITY : log.end;
    this.reader = new LogReader(log, after, { stream, id: readerId });
    followers.add(this);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get silentMs(): number {
    return performance.now() - this.#lastSentAt;
  }

  markSent(): void {
    this.#lastSentAt = performance.now();
  }

  /** Waits once nothing is left to take. `silence`: a keepalive is due. */
  async next(): Promise<"more" | "silence" | "over"> {
    const { log } = this.process;
    const { position } = this.reader;
    if (position >= this.end) return "over";
    if (log.isClosed) {
      await this.process.over;
      return this.reader.position >= log.end ? "over" : "more";
    }
    // New output may belong to the other stream, which does not count as sent here.
    const everyMs = limits.eventHeartbeatMs;
    await log.arrived(this.silentMs < everyMs ? everyMs - this.silentMs : everyMs);
    return log.isClosed || this.silentMs < everyMs ? "more" : "silence";
  }

  /** May be called again; then it does nothing. */
  close(): void {
    const { log } = this.process;
    const hasAll = this.reader.position >= Math.min(this.end, log.isClosed ? log.end : this.end);
    this.#close({ mayReturn: !hasAll });
  }

  evict(): void {
    this.onEvicted?.();
    this.#close({ mayReturn: false });
  }

  #close({ mayReturn }: { mayReturn: boolean }): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.process.followers.delete(this);
    this.reader.close({ mayReturn });
  }
}

/**
 * Makes room for one more by evicting the follower of raw bytes that was silent for longest: raw bytes have no
 * keepalive, so a dead connection among them goes unnoticed.
 */
function evictIfFull(followers: ReadonlySet<LogFollower>): void {
  const limit = limits.processFollowersMax;
  if (followers.size < limit) return;
  const [quietest] = [...followers]
    .filter(({ form, silentMs }) => form === "bytes" && silentMs > limits.eventHeartbeatMs)
    .sort((a, b) => b.silentMs - a.silentMs);
  if (quietest === undefined) {
    throw new BerthError("too_many", `${limit} readers of this log are connected already.`, {
      hint: "Close one of them.",
      facts: { limit },
    });
  }
  quietest.evict();
}
