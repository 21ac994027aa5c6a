/**
 * Owns that there are never two holders: fences only grow, and work under different leases never overlaps, nor work
 * under a lease with work under none.
 */
import type { Check } from "./check.ts";

export const fencesGrow: Check = ({ grants }, { sandboxes }) => {
  const problems: string[] = [];
  for (const grant of grants) {
    const { box, fence, holder } = grant;
    const now = sandboxes[box];
    if (now !== undefined && now !== "gone" && now.state !== "destroyed" && now.fence < fence) {
      problems.push(`fence ${fence} of ${box} was given, and it has ${now.fence}`);
    }
    for (const other of grants) {
      if (other === grant || other.box !== box) continue;
      if (other.fence === fence && other.holder > holder) {
        problems.push(`${holder} and ${other.holder} both got fence ${fence} of ${box}`);
      }
      if (other.answeredMs < grant.askedMs && other.fence >= fence) {
        problems.push(`${holder} got fence ${fence} of ${box} after ${other.fence}`);
      }
    }
  }
  return problems;
};

type Line = { fence: number | undefined; step: string | undefined; marker: string };
type Work = { fence: number | undefined; begin: number; end: number };

export const workNeverOverlaps: Check = (_history, { kept }) =>
  Object.entries(kept).flatMap(([box, { holds }]) => {
    const problems: string[] = [];
    const lines = holds.flatMap(lineOf);
    const works = worksIn(lines);
    let highest = 0;
    for (const { fence } of lines) {
      if (fence === undefined) continue;
      if (fence < highest) problems.push(`fence ${fence} worked in ${box} after ${highest}`);
      highest = Math.max(highest, fence);
    }
    for (const one of works) {
      if (one.fence === undefined) continue;
      for (const other of works) {
        const isAlone = other.fence === one.fence || other.end < one.begin || one.end < other.begin;
        if (!isAlone) {
          const whose = other.fence === undefined ? "work without a lease" : `fence ${other.fence}`;
          problems.push(`work under fence ${one.fence} of ${box} met ${whose}`);
        }
      }
    }
    return problems;
  });

/** Nothing of one that a full disk cut off: half a fence is another's. */
function lineOf(text: string): Line[] {
  const under = /^L (\d+) ([be]) (\S+)$/.exec(text);
  if (under !== null) return [{ fence: Number(under[1]), step: under[2], marker: under[3] ?? "" }];
  const without = /^U (\S+) ([be])$/.exec(text);
  return without === null ? [] : [{ fence: undefined, step: without[2], marker: without[1] ?? "" }];
}

/** What never ended was ended: it overlaps with nothing that came after its beginning. */
function worksIn(lines: Line[]): Work[] {
  const works = new Map<string, Work>();
  for (const [at, { fence, step, marker }] of lines.entries()) {
    const work = works.get(marker);
    if (step === "b") works.set(marker, { fence, begin: at, end: at });
    else if (work !== undefined) work.end = at;
  }
  return [...works.values()];
}
