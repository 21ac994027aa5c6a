/**
 * Owns that everything comes to rest after the faults: sandboxes settle, lists agree with them, and nothing is left
 * when the server has ended.
 */
import type { Check } from "./check.ts";

export const everythingSettles: Check = (_history, { unsettled }) => unsettled;

export const nothingIsLeft: Check = (_history, { strays }) => strays;

export const listsAgree: Check = (_history, { sandboxes, listed }) => {
  const rows = new Map(listed.map((row) => [row.id, row]));
  return Object.entries(sandboxes).flatMap(([id, seen]) => {
    const row = rows.get(id);
    if (seen === "gone") return row === undefined ? [] : [`${id} is listed and not known`];
    if (seen.state === "destroyed") {
      return row === undefined || row.state === "destroyed"
        ? []
        : [`${id} is destroyed and listed as ${row.state}`];
    }
    if (row === undefined) return [`${id} is ${seen.state} and not listed`];
    if (row.state !== seen.state) return [`${id} is ${seen.state} and listed as ${row.state}`];
    const [own, told] = [seen.metadata, row.metadata].map(sorted);
    return own === told ? [] : [`the metadata of ${id} is ${own} and listed as ${told}`];
  });
};

function sorted(map: Record<string, string>): string {
  return JSON.stringify(Object.entries(map).sort(([one], [other]) => (one < other ? -1 : 1)));
}
