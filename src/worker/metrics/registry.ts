/** Counts the calls of this isolate by verb and outcome. On one machine there is one isolate, so these are all calls. */
import type { VerbName } from "../../protocol/verbs.ts";

/** Upper bounds of the buckets, in seconds: from an exec in memory to a build. */
export const bucketSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 600];

export type Timings = {
  /** Cumulative, one for each bound. */
  buckets: number[];
  count: number;
  seconds: number;
};

/** The labels are bounded by the table of verbs and by ten outcomes. */
export class CallCounts {
  /** By verb and outcome, such as `2xx` or the status of a refusal. */
  readonly outcomes = new Map<string, { verb: VerbName; status: string; count: number }>();
  readonly timings = new Map<VerbName, Timings>();

  record(verb: VerbName, status: number, ms: number): void {
    const shown = status < 400 ? `${Math.floor(status / 100)}xx` : String(status);
    const name = `${verb} ${shown}`;
    const outcome = this.outcomes.get(name);
    if (outcome === undefined) this.outcomes.set(name, { verb, status: shown, count: 1 });
    else outcome.count += 1;
    const timings = this.timings.get(verb) ?? {
      ...{ buckets: bucketSeconds.map(() => 0), count: 0, seconds: 0 },
    };
    this.timings.set(verb, timings);
    const seconds = Math.max(0, ms) / 1000;
    timings.count += 1;
    timings.seconds += seconds;
    for (const [index, bound] of bucketSeconds.entries()) {
      if (seconds <= bound) timings.buckets[index] = (timings.buckets[index] ?? 0) + 1;
    }
  }
}

export const calls = new CallCounts();
