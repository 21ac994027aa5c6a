/** Reads the log of a process for one connection: how far, when it has everything, and how many may follow. */
import { limits } from "../../../src/protocol/limits.ts";
import { tooMany } from "../server/fields.ts";
import type { Process } from "./process.ts";
import type { Stream } from "./runs.ts";

export type FollowOptions = {
  after: number;
  follow: boolean;
  /** Undefined: both. */
  stream: Stream | undefined;
  form: "bytes" | "events";
  /** Connections with the same id belong to one reader; a new one replaces the earlier one. */
  readerId: string | undefined;
};

/** `cursor` is the position after the bytes. */
export type Piece = { stream: Stream; bytes: Uint8Array; cursor: number };
type Gap = { from: number; to: number };

export class LogFollower {
  readonly process: Process;
  readonly id: string | undefined;
  readonly form: FollowOptions["form"];
  position: number;
  /** Cuts the connection off when another one takes its place. */
  onEvicted: (() => void) | undefined;
  readonly #stream: Stream | undefined;
  /** Ends before this cursor; infinite for one that follows. */
  readonly #end: number;
  #lastSentAt = performance.now();
  #isClosed = false;

  constructor(process: Process, { after, follow, stream, form, readerId }: FollowOptions) {
    const { followers, log } = process;
    if (readerId !== undefined) {
      for (const other of [...followers]) if (other.id === readerId) other.evict();
    }
    evictIfFull(followers);
    this.process = process;
    this.id = readerId;
    this.form = form;
    this.position = after;
    this.#stream = stream;
    this.#end = follow ? Number.POSITIVE_INFINITY : log.end;
    log.retention.attach(this);
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

  /** What was lost before the position, which then moves to the oldest byte. */
  skipGap(): Gap | undefined {
    const { start } = this.process.log;
    if (this.position >= start) return undefined;
    const gap = { from: this.position, to: start };
    this.position = start;
    return gap;
  }

  /** At most `bytesMax` bytes; empty where there are none yet. */
  take(bytesMax: number): Piece[] {
    const { log } = this.process;
    const { runs } = log;
    this.#skipOtherStream();
    const first = this.position;
    const to = Math.min(first + bytesMax, this.#end, runs.end);
    if (first >= to) return [];
    const block = log.read(first, to - first);
    const pieces: Piece[] = [];
    for (let cursor = first; cursor < to; ) {
      const run = runs.at(cursor);
      if (run === undefined) break;
      const next = Math.min(run.to, to);
      if (this.#stream === undefined || run.stream === this.#stream) {
        const bytes = block.subarray(cursor - first, next - first);
        pieces.push({ stream: run.stream, bytes, cursor: next });
      }
      cursor = next;
    }
    this.#moveTo(to);
    return pieces;
  }

  /** Waits once nothing is left to take. `silence`: a keepalive is due. */
  async next(): Promise<"more" | "silence" | "over"> {
    const { log, over } = this.process;
    if (this.position >= this.#end) return "over";
    if (log.isClosed) {
      await over;
      return this.position >= log.end ? "over" : "more";
    }
    // New output may belong to the other stream, which does not count as sent here.
    const everyMs = limits.eventHeartbeatMs;
    await log.arrived(this.silentMs < everyMs ? everyMs - this.silentMs : everyMs);
    return log.isClosed || this.silentMs < everyMs ? "more" : "silence";
  }

  /** May be called again; then it does nothing. */
  close(): void {
    const { log } = this.process;
    const hasAll = this.position >= Math.min(this.#end, log.isClosed ? log.end : this.#end);
    this.#close({ mayReturn: !hasAll });
  }

  evict(): void {
    this.onEvicted?.();
    this.#close({ mayReturn: false });
  }

  #close({ mayReturn }: { mayReturn: boolean }): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { followers, log } = this.process;
    followers.delete(this);
    const mayBlock = log.onFull === "block" && !log.isClosed;
    log.retention.detach(this, { mayReturn: mayReturn && mayBlock });
    const { endsWithReader } = this.process.info.options;
    if (endsWithReader === true && mayReturn && followers.size === 0) this.process.end();
  }

  /** Skips a run of the other stream at once, because it may be long. */
  #skipOtherStream(): void {
    const run = this.process.log.runs.at(this.position);
    const isOther = run !== undefined && this.#stream !== undefined && run.stream !== this.#stream;
    if (isOther) this.#moveTo(Math.min(run.to, this.#end));
  }

  #moveTo(position: number): void {
    this.position = position;
    this.process.log.onReaderMoved();
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
    throw tooMany(limit, "readers of this log are connected already", "Close one of them.");
  }
  quietest.evict();
}
