/**
 * Checks that there are never two holders: fences only grow, and work under one lease never overlaps with work under
 * another lease or under none.
 */
import type { Check } from "../final-state.ts";

export const fencesGrow: Check = ({ grants }, { sandboxes }) => {
  const problems: string[] = [];
  for (const grant of grants) {
    const { sandboxId, fence, holder } = grant;
    const now = sandboxes[sandboxId];
    if (now !== undefined && now !== "gone" && now.state !== "destroyed" && now.fence < fence) {
      problems.push(`fence ${fence} of ${sandboxId} was granted, but it has ${now.fence}`);
    }
    for (const other of grants) {
      if (other === grant || other.sandboxId !== sandboxId) continue;
      if (other.fence === fence && other.holder > holder) {
        problems.push(`${holder} and ${other.holder} both got fence ${fence} of ${sandboxId}`);
      }
      if (other.returnedMs < grant.calledMs && other.fence >= fence) {
        problems.push(`${holder} got fence ${fence} of ${sandboxId} after ${other.fence}`);
      }
    }
  }
  return problems;
};

type HoldLine = { fence: number | undefined; step: string | undefined; marker: string };
type WorkSpan = { fence: number | undefined; begin: number; end: number };

export const workNeverOverlaps: Check = (_history, { contents }) =>
  Object.entries(contents).flatMap(([sandboxId, { holds }]) => {
    const problems: string[] = [];
    const lines = holds.flatMap(lineOf);
    const works = workIn(lines);
    let highest = 0;
    for (const { fence } of lines) {
      if (fence === undefined) continue;
      if (fence < highest) problems.push(`fence ${fence} worked in ${sandboxId} after ${highest}`);
      highest = Math.max(highest, fence);
    }
    for (const work of works) {
      if (work.fence === undefined) continue;
      for (const other of works) {
        const isSeparate =
          other.fence === work.fence || other.end < work.begin || work.end < other.begin;
        if (!isSeparate) {
          const overlapping =
            other.fence === undefined ? "work without a lease" : `fence ${other.fence}`;
          problems.push(
            `work under fence ${work.fence} of ${sandboxId} overlapped with ${overlapping}`,
          );
        }
      }
    }
    return problems;
  });

/** Ignores a line that a full disk cut off, because half a fence looks like another fence. */
function lineOf(text: string): HoldLine[] {
  const under = /^L (\d+) ([be]) (\S+)$/.exec(text);
  if (under !== null) return [{ fence: Number(under[1]), step: under[2], marker: under[3] ?? "" }];
  const without = /^U (\S+) ([be])$/.exec(text);
  return without === null ? [] : [{ fence: undefined, step: without[2], marker: without[1] ?? "" }];
}

/** Work without an end was killed: it overlaps with nothing after its start. */
function workIn(lines: HoldLine[]): WorkSpan[] {
  const works = new Map<string, WorkSpan>();
  for (const [at, { fence, step, marker }] of lines.entries()) {
    const work = works.get(marker);
    if (step === "b") works.set(marker, { fence, begin: at, end: at });
    else if (work !== undefined) work.end = at;
  }
  return [...works.values()];
}
