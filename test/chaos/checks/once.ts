/**
 * Owns that nothing runs twice, that what was acknowledged ran, and that what was refused did not.
 */
import type { Check } from "./check.ts";

export const runsOnce: Check = ({ runs }, { kept }) => {
  const counts = new Map<string, number>();
  for (const [box, { ran }] of Object.entries(kept)) {
    for (const marker of ran) {
      counts.set(`${box} ${marker}`, (counts.get(`${box} ${marker}`) ?? 0) + 1);
    }
  }
  return runs.flatMap(({ box, marker, outcome, code }) => {
    if (kept[box] === undefined) return [];
    const count = counts.get(`${box} ${marker}`) ?? 0;
    if (count > 1) return [`command ${marker} of ${box} ran ${count} times`];
    if (count === 0 && outcome === "ack") return [`command ${marker} of ${box} was lost`];
    if (count === 1 && outcome === "refused")
      return [`command ${marker} of ${box} ran, refused (${code})`];
    return [];
  });
};
