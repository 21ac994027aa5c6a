/**
 * Checks that acknowledged sandboxes and checkpoints exist until somebody removes them, and not afterwards, and that
 * a scope has at most one sandbox.
 */
import type { Check } from "./check.ts";

export const sandboxesAreKept: Check = ({ created, destroyed }, { sandboxes }) => {
  const requested = new Map(destroyed.map((end) => [end.id, end]));
  const acked = new Set(
    destroyed.filter(({ ackedMs }) => ackedMs !== undefined).map(({ id }) => id),
  );
  return [...new Set(created.map(({ id }) => id))].flatMap((id) => {
    const seen = sandboxes[id];
    if (seen === undefined) return [];
    if (seen === "gone") return [`sandbox ${id} was acknowledged but is unknown`];
    if (acked.has(id) && seen.state !== "destroyed") {
      return [`sandbox ${id} was destroyed and is ${seen.state}`];
    }
    if (!requested.has(id) && seen.state === "destroyed") {
      return [`sandbox ${id} is destroyed, although nobody requested that`];
    }
    return [];
  });
};

export const scopesAreSingle: Check = ({ created, destroyed }, { listed }) => {
  const problems: string[] = [];
  for (const { id, scope, calledMs } of created) {
    if (scope === undefined) continue;
    const end = destroyed.find(
      (end) => end.id === id && (end.ackedMs ?? Number.MAX_VALUE) < calledMs,
    );
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

export const checkpointsAreKept: Check = ({ saved }, { contents }) =>
  saved.flatMap(({ sandboxId, id, drop }) => {
    const there = contents[sandboxId]?.checkpoints;
    if (there === undefined) return [];
    const isThere = there.includes(id);
    if (isThere && drop === "acked")
      return [`checkpoint ${id} of ${sandboxId} was removed but still exists`];
    if (isThere || drop !== undefined) return [];
    return [`checkpoint ${id} of ${sandboxId} was acknowledged but does not exist`];
  });
