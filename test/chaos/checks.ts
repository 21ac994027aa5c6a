/**
 * The promises that a run is checked against, with the name of each in reports.
 */
import { failuresAreTyped, nothingHangs, runsOnce } from "./checks/calls.ts";
import type { Check } from "./checks/check.ts";
import { fencesGrow, workNeverOverlaps } from "./checks/holders.ts";
import { readsAreTrue, streamsAreWhole } from "./checks/reads.ts";
import { checkpointsAreKept, sandboxesAreKept, scopesAreSingle } from "./checks/sandboxes.ts";
import { everythingSettles, listsAgree, nothingIsLeft } from "./checks/settled.ts";
import { filesAreKept, metadataIsKept, versionsGrow } from "./checks/writes.ts";
import type { FinalState } from "./final-state.ts";
import type { History } from "./history.ts";

const checks = {
  "metadata lost": metadataIsKept,
  "versions wrong": versionsGrow,
  "files lost": filesAreKept,
  "sandboxes lost": sandboxesAreKept,
  "scopes shared": scopesAreSingle,
  "checkpoints lost": checkpointsAreKept,
  "runs lost or repeated": runsOnce,
  "fences wrong": fencesGrow,
  "leases overlapped": workNeverOverlaps,
  "reads wrong": readsAreTrue,
  "streams broken": streamsAreWhole,
  hung: nothingHangs,
  "failures untyped": failuresAreTyped,
  "lists wrong": listsAgree,
  unsettled: everythingSettles,
  leftovers: nothingIsLeft,
} as const satisfies Record<string, Check>;

export type CheckName = keyof typeof checks;
export type Findings = Record<CheckName, string[]>;

export function findingsOf(history: History, finalState: FinalState): Findings {
  const findings = Object.entries(checks).map(([name, check]) => [
    name,
    check(history, finalState),
  ]);
  return Object.fromEntries(findings) as Findings;
}
