/** The promises that a run is checked against, with the name of each in reports. */
import {
  failuresAreTyped,
  nothingHangs,
  readsAreTrue,
  runsOnce,
  streamsAreWhole,
} from "./checks/calls.ts";
import { fencesGrow, workNeverOverlaps } from "./checks/holders.ts";
import {
  checkpointsAreKept,
  everythingSettles,
  listsAgree,
  nothingIsLeft,
  sandboxesAreKept,
  scopesAreSingle,
} from "./checks/sandboxes.ts";
import { filesAreKept, metadataIsKept, versionsGrow } from "./checks/writes.ts";
import type { Check, FinalState } from "./final-state.ts";
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
