/**
 * Checks that everything settles after the faults: sandboxes are stable, lists agree with them, and nothing is left
 * after the server's end.
 */
import type { Check } from "./check.ts";

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
