/**
 * Owns the names of what a history of many objects can break on purpose. Each must be found: else it proves nothing.
 */
export const fleetBreakages = [
  /** Control of a container goes out before its rows are on disk. */
  "an effect does not wait",
  /** Members may be added, replaced and removed while a run is open. */
  "members are not frozen",
  /** A fresh instance of the plan goes on as if it had decided to commit. */
  "an undecided run is committed",
  /** The plan tells its members before its decision is on disk. */
  "the decision is told too early",
  /** A member takes steps of runs that are over. */
  "members forget which runs are over",
  /** The lease of a held member ends with its time. */
  "a held lease expires",
  /** Find-or-create looks, waits, and then writes. */
  "find and create are two steps",
  /** The Directory takes reports in the order in which they come. */
  "reports have no order",
  /** What could not be told is not told again. */
  "finishing is tried once",
] as const;

export type FleetBreakage = (typeof fleetBreakages)[number];
