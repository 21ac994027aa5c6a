/**
 * Checks that each call ends within the limit, successfully or with an error of the table that is no server fault,
 * that no command runs twice, is lost, or runs although it was refused, and that what clients read is true: values,
 * trees, lists, and numbered lines without gaps or repeats.
 */

import type { Check } from "../final-state.ts";
import { faultCodes } from "../harness.ts";

export const nothingHangs: Check = ({ calls }) =>
  calls.flatMap(({ client, verb, sandboxId, outcome }) =>
    outcome === undefined || outcome === "hung"
      ? [`${verb} of ${client} on ${sandboxId} did not end`]
      : [],
  );

export const failuresAreTyped: Check = ({ calls }) =>
  calls.flatMap(({ client, verb, sandboxId, code, detail }) =>
    code !== undefined && faultCodes.has(code)
      ? [`${verb} of ${client} on ${sandboxId} failed with ${code}: ${detail ?? ""}`]
      : [],
  );

export const runsOnce: Check = ({ runs }, { contents }) => {
  const counts = new Map<string, number>();
  for (const [sandboxId, { ran }] of Object.entries(contents)) {
    for (const marker of ran) {
      counts.set(`${sandboxId} ${marker}`, (counts.get(`${sandboxId} ${marker}`) ?? 0) + 1);
    }
  }
  return runs.flatMap(({ sandboxId, marker, outcome, code }) => {
    if (contents[sandboxId] === undefined) return [];
    const count = counts.get(`${sandboxId} ${marker}`) ?? 0;
    if (count > 1) return [`command ${marker} of ${sandboxId} ran ${count} times`];
    if (count === 0 && outcome === "ack") return [`command ${marker} of ${sandboxId} was lost`];
    if (count === 1 && outcome === "refused")
      return [`command ${marker} of ${sandboxId} ran, refused (${code})`];
    return [];
  });
};

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
