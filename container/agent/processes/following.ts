/**
 * Owns one reader's way through a process's log: up to where it goes, when it has all, and how many there may be.
 * Does not own the form in which it is sent (log-events.ts, log-bytes.ts).
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { LogReader } from "./log-reader.ts";
import type { Process } from "./process.ts";
import type { Stream } from "./runs.ts";

export class Following {
  readonly process: Process;
  readonly reader: LogReader;
  /** Nothing from there on; infinite for one that follows. */
  readonly end: number;
  #isClosed = false;

  constructor(
    process: Process,
    where: { after: number; follow: boolean; stream: Stream | undefined },
  ) {
    if (process.followers >= limits.processFollowersMax) {
      const limit = limits.processFollowersMax;
      throw new BerthError("too_many", `${limit} readers of this log are connected already`, {
        hint: "close one of them",
        facts: { limit },
      });
    }
    this.process = process;
    this.end = where.follow ? Number.POSITIVE_INFINITY : process.log.end;
    this.reader = process.log.attach(where.after, where.stream);
    process.followers += 1;
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
    const before = log.end;
    await log.arrived(limits.eventHeartbeatMs);
    return log.end === before && !log.isClosed ? "silence" : "more";
  }

  /** However it ends; a second time does nothing. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.process.followers -= 1;
    const { log } = this.process;
    const hasAll = this.reader.position >= Math.min(this.end, log.isClosed ? log.end : this.end);
    this.reader.close(!hasAll);
  }
}
