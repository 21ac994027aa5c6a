/**
 * Owns one reader's way through a process's log: up to where it goes, when it has all, and how many there may be.
 * Does not own the form in which it is sent (log-events.ts, log-bytes.ts).
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Form, LogReader } from "./log-reader.ts";
import type { Process } from "./process.ts";
import type { Stream } from "./runs.ts";

export class Following {
  readonly process: Process;
  readonly reader: LogReader;
  /** Nothing from there on; infinite for one that follows. */
  readonly end: number;
  /** Cuts its connection off; undefined where the other end hears of it in silence too, and is missed when gone. */
  onLetGo: (() => void) | undefined;
  /** When it was last told something. */
  #toldAt = performance.now();
  #isClosed = false;

  constructor(
    process: Process,
    where: { after: number; follow: boolean; stream: Stream | undefined; form: Form },
  ) {
    makeRoom(process.followers);
    this.process = process;
    this.end = where.follow ? Number.POSITIVE_INFINITY : process.log.end;
    this.reader = process.log.attach(where.after, where.stream, where.form);
    process.followers.add(this);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get silentMs(): number {
    return performance.now() - this.#toldAt;
  }

  told(): void {
    this.#toldAt = performance.now();
  }

  /** After nothing was left to take. `silence`: for so long that the other end should hear of it. */
  async next(): Promise<"more" | "silence" | "over"> {
    const { log } = this.process;
    const { position } = this.reader;
    if (position >= this.end) return "over";
    if (log.isClosed) {
      await this.process.over;
      return this.reader.position >= log.end ? "over" : "more";
    }
    // What comes may be of the other stream: that breaks no silence here.
    const everyMs = limits.eventHeartbeatMs;
    await log.arrived(this.silentMs < everyMs ? everyMs - this.silentMs : everyMs);
    return log.isClosed || this.silentMs < everyMs ? "more" : "silence";
  }

  /** However it ends; a second time does nothing. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.process.followers.delete(this);
    const { log } = this.process;
    const hasAll = this.reader.position >= Math.min(this.end, log.isClosed ? log.end : this.end);
    this.reader.close(!hasAll);
  }
}

/**
 * Where all places are taken, the one goes that was silent for longest, or whose reader seems to be back: raw bytes do
 * not show whether anybody reads.
 */
function makeRoom(followers: ReadonlySet<Following>): void {
  const limit = limits.processFollowersMax;
  if (followers.size < limit) return;
  const [quietest] = [...followers]
    .filter(({ onLetGo }) => onLetGo !== undefined)
    .filter(({ silentMs, reader }) => silentMs > limits.eventHeartbeatMs || reader.isBack)
    .sort((a, b) => b.silentMs - a.silentMs);
  if (quietest !== undefined) {
    quietest.onLetGo?.();
    quietest.close();
    return;
  }
  throw new BerthError("too_many", `${limit} readers of this log are connected already`, {
    hint: "close one of them",
    facts: { limit },
  });
}
