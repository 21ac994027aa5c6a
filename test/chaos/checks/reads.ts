/**
 * Checks what clients read during the run: values, trees, lists, and numbered lines without gaps or repeats.
 */
import type { Check } from "./check.ts";

export const readsAreTrue: Check = ({ reads }) =>
  reads.flatMap(({ client, what, sandboxId, allowed, got, trail = [] }) =>
    allowed.includes(got)
      ? []
      : [
          `${client} read ${what} of ${sandboxId} as ${JSON.stringify(got)}, not ${allowed.join(" or ")}${trail.map((line) => `\n      ${line}`).join("")}`,
        ],
  );

export const streamsAreWhole: Check = ({ streams }) =>
  streams.flatMap(({ sandboxId, what, lines, lineCount, isTruncated }) => {
    if (isTruncated) return [];
    const gap = lines.findIndex((line, index) => line !== index);
    if (gap >= 0) return [`${what} of ${sandboxId} has ${lines[gap]} instead of line ${gap}`];
    const endsEarly = lineCount !== undefined && lines.length !== lineCount;
    return endsEarly
      ? [`${what} of ${sandboxId} ended with ${lines.length} of ${lineCount} lines`]
      : [];
  });
