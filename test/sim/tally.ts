/** Sums over many histories, and what they must reach to mean anything. */
import { faultNames as fleetFaultNames } from "./fleet/script.ts";
import { startFault } from "./sandbox/history.ts";
import type { History } from "./simulation.ts";

const states = ["starting", "running", "pausing", "paused", "failed", "destroying", "destroyed"];
const leaseStates = ["free", "offered", "held", "draining"];
const failReasons = ["container_lost", "start_timed_out", "pause_timed_out", "start_refused"];
const endReasons = ["released", "expired", "broken", "forced", "unused", "destroyed"];

function ofKind(kind: string, names: readonly string[]): string[] {
  return names.map((name) => `${kind}: ${name}`);
}

/** What the histories must reach; otherwise the invariants were never tested. */
export const mustReach: readonly string[] = [
  ...ofKind("state", states),
  ...ofKind("lease", leaseStates),
  ...ofKind("state: failed", failReasons),
  ...ofKind("lease: ended", endReasons),
  ...ofKind("fault", Object.keys(startFault)),
  ...ofKind("fault", ["caller goes away", "crash after a commit has come"]),
  ...ofKind("fault: crash", ["dead", "forgotten"]),
  ...ofKind("fault: lost", [
    "request to the agent",
    "answer of the agent",
    "answer of the engine",
    "answer to a client",
  ]),
  ...ofKind("answer: acquire", [
    "ok",
    "lease_held",
    "lease_pending",
    "lease_wait_timeout",
    "lease_lost",
    "sandbox_destroyed",
  ]),
  ...ofKind("answer: exec", [
    "ok",
    "lease_held",
    "lease_lost",
    "lease_wait_timeout",
    "operation_interrupted",
    "not_running",
    "start_failed",
  ]),
  ...ofKind("answer: release", ["lease_busy", "lease_lost"]),
  ...ofKind("answer: renew", ["ok"]),
  ...ofKind("answer: patch", ["version_mismatch"]),
  ...ofKind("answer: put", ["ok"]),
  ...ofKind("outcome", [
    "a lease was granted",
    "a drain was confirmed",
    "a drain by replacement",
    "a waiter polled",
    "an answer was streamed",
    "the agent refused a stale fence",
    "leased work ran",
    "unleased work ran",
    "a tombstone ended",
    "a known key was repeated",
    "an unsure key was repeated",
    "the agent knew an id",
    "the agent had never seen an id",
  ]),
  ...ofKind("answer: idempotent", ["operation_interrupted", "result_gone", "unavailable"]),
];

/** The same for histories on the platform. */
export const platformMustReach: readonly string[] = [
  ...ofKind("state", states),
  ...ofKind("lease", leaseStates),
  ...ofKind("outcome", [
    "the object slept",
    "a host gave notice",
    "leased work ran",
    "unleased work ran",
  ]),
  ...ofKind("answer: exec", ["ok", "operation_interrupted", "not_running"]),
];

/** The same for histories of a fleet. */
export const fleetMustReach: readonly string[] = [
  ...ofKind("fault", fleetFaultNames),
  ...ofKind("fault", ["a request arrives twice"]),
  ...ofKind("fault: lost", ["request between objects"]),
  ...ofKind("fault: crash", ["dead", "forgotten"]),
  ...ofKind("outcome: a decision", ["commit", "abort", "roll_back"]),
  ...ofKind("outcome", ["a plan was used again", "a plan was named", "one was replaced"]),
  ...ofKind("answer: commit", [
    "committed",
    "aborted",
    "plan_busy",
    "nothing_to_commit",
    "lease_held",
  ]),
  ...ofKind("answer: remove", ["lease_held", "ok", "plan_busy"]),
  ...ofKind("answer: end", ["lease_held", "ok", "plan_busy", "not_found"]),
  ...ofKind("answer: rollback", ["rolled_back", "nothing_to_roll_back"]),
  ...ofKind("answer: put", ["ok", "in_other_plan", "plan_busy", "sandbox_destroyed"]),
  ...ofKind("answer: find", ["ok", "lease_held"]),
  ...ofKind("answer: list", ["ok"]),
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
