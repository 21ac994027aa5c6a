/**
 * Checks that acknowledged sandboxes and checkpoints exist until somebody removes them, and not afterwards, that a
 * scope has at most one sandbox, and that after the faults everything is stable, listed as it is, and at the end gone.
 */
import type { Check } from "../final-state.ts";

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

export const everythingSettles: Check = (_history, { unsettled }) => unsettled;

export const nothingIsLeft: Check = (_history, { leftovers }) => leftovers;

export const listsAgree: Check = (_history, { sandboxes, listed }) => {
  const rows = new Map(listed.map((row) => [row.id, row]));
  return Object.entries(sandboxes).flatMap(([id, seen]) => {
    const row = rows.get(id);
    if (seen === "gone") return row === undefined ? [] : [`${id} is listed but unknown`];
    if (seen.state === "destroyed") {
      return row === undefined || row.state === "destroyed"
        ? []
        : [`${id} is destroyed and listed as ${row.state}`];
    }
    if (row === undefined) return [`${id} is ${seen.state} and not listed`];
    if (row.state !== seen.state) return [`${id} is ${seen.state} and listed as ${row.state}`];
    const [own, inList] = [seen.metadata, row.metadata].map(sortedJson);
    return own === inList ? [] : [`the metadata of ${id} is ${own} and listed as ${inList}`];
  });
};

function sortedJson(map: Record<string, string>): string {
  return JSON.stringify(Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1)));
}
