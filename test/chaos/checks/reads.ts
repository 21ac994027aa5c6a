/**
 * Owns what clients saw on the way: values, trees, lists, and numbered lines without a gap or a repeat.
 */
import type { Check } from "./check.ts";

export const readsAreTrue: Check = ({ reads }) =>
  reads.flatMap(({ client, what, box, allowed, got, trail = [] }) =>
    allowed.includes(got)
      ? []
      : [
          `${client} read ${what} of ${box} as ${JSON.stringify(got)}, not ${allowed.join(" or ")}${trail.map((line) => `\n      ${line}`).join("")}`,
        ],
  );

export const streamsAreWhole: Check = ({ streams }) =>
  streams.flatMap(({ box, what, lines, whole, isShort }) => {
    if (isShort) return [];
    const gap = lines.findIndex((line, at) => line !== at);
    if (gap >= 0) return [`${what} of ${box} has ${lines[gap]} in the place of line ${gap}`];
    const endsEarly = whole !== undefined && lines.length !== whole;
    return endsEarly ? [`${what} of ${box} ended with ${lines.length} of ${whole} lines`] : [];
  });
