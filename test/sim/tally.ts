/**
 * Sums over many histories, and what they must reach to mean anything.
 */

import { faultNames as fleetFaultNames } from "./fleet/script.ts";
import { startFault } from "./sandbox/faults.ts";
import type { History } from "./simulation.ts";

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
  ...Object.keys(startFault).map((name) => `fault: ${name}`),
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

/** The same for histories of a fleet. */
export const fleetMustReach: readonly string[] = [
  ...fleetFaultNames.map((name) => `fault: ${name}`),
  "fault: a request arrives twice",
  "fault: lost: request between objects",
  "fault: crash: dead",
  "fault: crash: forgotten",
  "outcome: a decision: commit",
  "outcome: a decision: abort",
  "outcome: a decision: roll_back",
  "outcome: a plan was used again",
  "outcome: a plan was named",
  "answer: commit: committed",
  "answer: commit: aborted",
  "answer: commit: plan_busy",
  "answer: commit: nothing_to_commit",
  "answer: commit: lease_held",
  "answer: remove: lease_held",
  "answer: end: lease_held",
  "answer: rollback: rolled_back",
  "answer: rollback: nothing_to_roll_back",
  "answer: put: ok",
  "answer: put: in_other_plan",
  "answer: put: plan_busy",
  "answer: put: sandbox_destroyed",
  "answer: remove: ok",
  "answer: remove: plan_busy",
  "answer: end: ok",
  "answer: end: plan_busy",
  "answer: end: not_found",
  "answer: find: ok",
  "answer: find: lease_held",
  "outcome: one was replaced",
  "answer: list: ok",
];

export class Tally {
  histories = 0;
  readonly #mustReach: readonly string[];
  readonly #counts = new Map<string, number>();
  #steps = 0;

  constructor(mustReach: readonly string[]) {
    this.#mustReach = mustReach;
  }

  add(history: History): void {
    this.histories++;
    this.#steps += history.steps;
    for (const [name, count] of history.counts) {
      this.#counts.set(name, this.#countOf(name) + count);
    }
  }

  get missed(): string[] {
    return this.#mustReach.filter((name) => !this.#counts.has(name));
  }

  get line(): string {
    const crashes = this.#countOf("fault: crash: dead") + this.#countOf("fault: crash: forgotten");
    const grants = this.#countOf("lease: grant received");
    const commits = this.#countOf("answer: commit: committed");
    return `${this.histories} histories, ${this.#steps} steps, ${crashes} crashes, ${grants} grants, ${commits} commits`;
  }

  get table(): string {
    const rows = [...this.#counts].sort(([left], [right]) => (left < right ? -1 : 1));
    return rows.map(([name, count]) => `${String(count).padStart(9)}  ${name}`).join("\n");
  }

  #countOf(name: string): number {
    return this.#counts.get(name) ?? 0;
  }
}
