/**
 * Owns that sandboxes and checkpoints that were answered are there until somebody ends them, and gone after that; and
 * that a scope has one at most.
 */
import type { Check } from "./check.ts";

export const sandboxesAreKept: Check = ({ made, ended }, { sandboxes }) => {
  const asked = new Map(ended.map((end) => [end.id, end]));
  const acked = new Set(ended.filter(({ ackedMs }) => ackedMs !== undefined).map(({ id }) => id));
  return [...new Set(made.map(({ id }) => id))].flatMap((id) => {
    const seen = sandboxes[id];
    if (seen === undefined) return [];
    if (seen === "gone") return [`sandbox ${id} was answered and is not known`];
    if (acked.has(id) && seen.state !== "destroyed") {
      return [`sandbox ${id} was destroyed and is ${seen.state}`];
    }
    if (!asked.has(id) && seen.state === "destroyed") {
      return [`sandbox ${id} is destroyed, and nobody asked for that`];
    }
    return [];
  });
};

export const scopesAreSingle: Check = ({ made, ended }, { listed }) => {
  const problems: string[] = [];
  for (const { id, scope, askedMs } of made) {
    if (scope === undefined) continue;
    const end = ended.find((one) => one.id === id && (one.ackedMs ?? Number.MAX_VALUE) < askedMs);
    if (end !== undefined) problems.push(`scope ${scope} gave ${id} after its end`);
  }
  const live = new Map<string, string[]>();
  for (const { id, scope, state } of listed) {
    if (scope === "" || state === "destroyed" || state === "destroying") continue;
    live.set(scope, [...(live.get(scope) ?? []), id]);
  }
  for (const [scope, ids] of live) {
    if (ids.length > 1) problems.push(`scope ${scope} has ${ids.join(" and ")}`);
  }
  return problems;
};

export const checkpointsAreKept: Check = ({ saved }, { kept }) =>
  saved.flatMap(({ box, id, drop }) => {
    const there = kept[box]?.checkpoints;
    if (there === undefined) return [];
    const isThere = there.includes(id);
    if (isThere && drop === "acked") return [`checkpoint ${id} of ${box} was dropped and is there`];
    if (isThere || drop !== undefined) return [];
    return [`checkpoint ${id} of ${box} was answered and is not there`];
  });
