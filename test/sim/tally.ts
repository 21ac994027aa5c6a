/**
 * Sums over many histories, and what they must reach to mean anything.
 */
import { faultNames } from "./faults.ts";
import type { History } from "./history.ts";

const states = ["starting", "running", "pausing", "paused", "failed", "destroying", "destroyed"];
const leaseStates = ["free", "offered", "held", "draining"];
const failReasons = ["container_lost", "start_timed_out", "pause_timed_out", "start_refused"];
const endReasons = ["released", "expired", "broken", "forced", "unused", "destroyed"];

/** What the histories must reach; otherwise the invariants were never tested. */
export const mustReach: readonly string[] = [
  ...states.map((name) => `state: ${name}`),
  ...leaseStates.map((name) => `lease: ${name}`),
  ...failReasons.map((name) => `state: failed: ${name}`),
  ...endReasons.map((name) => `lease: ended: ${name}`),
  ...faultNames.map((name) => `fault: ${name}`),
  "fault: caller goes away",
  "fault: crash: dead",
  "fault: crash: forgotten",
  "fault: crash after a commit has come",
  "fault: lost: request to the agent",
  "fault: lost: answer of the agent",
  "fault: lost: answer of the engine",
  "fault: lost: answer to a client",
  "answer: acquire: ok",
  "answer: acquire: lease_held",
  "answer: acquire: lease_pending",
  "answer: acquire: lease_wait_timeout",
  "answer: acquire: lease_lost",
  "answer: acquire: sandbox_destroyed",
  "answer: exec: ok",
  "answer: exec: lease_held",
  "answer: exec: lease_lost",
  "answer: exec: lease_wait_timeout",
  "answer: exec: operation_interrupted",
  "answer: exec: not_running",
  "answer: exec: start_failed",
  "answer: release: lease_busy",
  "answer: release: lease_lost",
  "answer: renew: ok",
  "answer: patch: version_mismatch",
  "answer: put: ok",
  "outcome: a lease was granted",
  "outcome: a drain was confirmed",
  "outcome: a drain by replacement",
  "outcome: a waiter polled",
  "outcome: an answer was streamed",
  "outcome: the agent refused a stale fence",
  "outcome: leased work ran",
  "outcome: unleased work ran",
  "outcome: a tombstone ended",
  "answer: idempotent: operation_interrupted",
  "answer: idempotent: result_gone",
  "answer: idempotent: unavailable",
  "outcome: a known key was repeated",
  "outcome: an unsure key was repeated",
  "outcome: the agent knew an id",
  "outcome: the agent had never seen an id",
];

export class Tally {
  histories = 0;
  steps = 0;
  grants = 0;
  readonly counts = new Map<string, number>();

  add(history: History): void {
    this.histories++;
    this.steps += history.steps;
    this.grants += history.grants;
    for (const [name, count] of history.counts) {
      this.counts.set(name, (this.counts.get(name) ?? 0) + count);
    }
  }

  get missed(): string[] {
    return mustReach.filter((name) => !this.counts.has(name));
  }

  get crashes(): number {
    return this.#of("fault: crash: dead") + this.#of("fault: crash: forgotten");
  }

  line(): string {
    const { histories, steps, grants, crashes } = this;
    return `${histories} histories, ${steps} steps, ${crashes} crashes, ${grants} grants`;
  }

  table(): string {
    const rows = [...this.counts].sort(([left], [right]) => (left < right ? -1 : 1));
    return rows.map(([name, count]) => `${String(count).padStart(9)}  ${name}`).join("\n");
  }

  #of(name: string): number {
    return this.counts.get(name) ?? 0;
  }
}
