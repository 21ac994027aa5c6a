/**
 * Owns which promises a run is held against, and by what name each is told.
 */
import { failuresAreTyped, nothingHangs } from "./checks/answers.ts";
import type { Check } from "./checks/check.ts";
import { fencesGrow, workNeverOverlaps } from "./checks/holders.ts";
import { runsOnce } from "./checks/once.ts";
import { readsAreTrue, streamsAreWhole } from "./checks/reads.ts";
import { everythingSettles, listsAgree, nothingIsLeft } from "./checks/rest.ts";
import { checkpointsAreKept, sandboxesAreKept, scopesAreSingle } from "./checks/sandboxes.ts";
import { filesAreKept, metadataIsKept, versionsGrow } from "./checks/written.ts";
import type { History } from "./history.ts";
import type { Truth } from "./truth.ts";

const checks = {
  "metadata lost": metadataIsKept,
  "versions wrong": versionsGrow,
  "files lost": filesAreKept,
  "sandboxes lost": sandboxesAreKept,
  "scopes shared": scopesAreSingle,
  "checkpoints lost": checkpointsAreKept,
  "runs lost or repeated": runsOnce,
  "fences wrong": fencesGrow,
  "holders met": workNeverOverlaps,
  "reads wrong": readsAreTrue,
  "streams broken": streamsAreWhole,
  hung: nothingHangs,
  "failures untyped": failuresAreTyped,
  "lists wrong": listsAgree,
  unsettled: everythingSettles,
  strays: nothingIsLeft,
} as const satisfies Record<string, Check>;

export type CheckName = keyof typeof checks;
export type Broken = Record<CheckName, string[]>;

export function findingsOf(history: History, truth: Truth): Broken {
  const told = Object.entries(checks).map(([name, check]) => [name, check(history, truth)]);
  return Object.fromEntries(told) as Broken;
}
