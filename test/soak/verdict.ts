/** Judges a soak: memory, descriptors and latency must stay flat after the first tenth. */
import { percentile } from "../bench/figure.ts";
import type { Slot } from "./slots.ts";
import { parts } from "./watch.ts";

const growthMax = 0.05;
/** A few allocator pages more are not growth. */
const growthBytesMin = 2 * 2 ** 20;
const descriptorsMin = 8;
/** Limit for the medians of p99s; other programs share the machine. */
const slowdownMax = 0.5;
const slowdownMsMin = 5;

type Judgement = { what: string; from: number; to: number; growth: number; flat: boolean };

/**
 * Compares the medians of the first third (after the first tenth) and the last third, so that a single disturbed slot
 * decides nothing, but a trend does.
 */
export function judge(slots: Slot[]): Judgement[] {
  const after = slots.slice(Math.ceil(slots.length / 10));
  const third = Math.max(1, Math.floor(after.length / 3));
  const ends = [after.slice(0, third), after.slice(-third)] as const;
  const judgeOne = (
    what: string,
    select: (slot: Slot) => number,
    growthMax: number,
    differenceMin: number,
  ) => {
    const [from = 0, to = 0] = ends.map((slice) => percentile(slice.map(select), 50));
    const growth = from === 0 ? 0 : to / from - 1;
    return { what, from, to, growth, flat: growth <= growthMax || to - from <= differenceMin };
  };
  return [
    ...parts.map((part) =>
      judgeOne(`memory of ${part}`, ({ bytes }) => bytes[part], growthMax, growthBytesMin),
    ),
    ...parts.map((part) =>
      judgeOne(
        `descriptors of ${part}`,
        (slot) => slot.descriptors[part],
        growthMax,
        descriptorsMin,
      ),
    ),
    judgeOne("p99 of exec", ({ execP99Ms }) => execP99Ms, slowdownMax, slowdownMsMin),
    judgeOne("p99 of all", ({ allP99Ms }) => allP99Ms, slowdownMax, slowdownMsMin),
  ];
}

export function verdictText(judgements: Judgement[]): string {
  return judgements
    .map(({ what, growth, flat }) => {
      const percent = `${growth < 0 ? "" : "+"}${(growth * 100).toFixed(1)} %`;
      return `${flat ? "Flat " : "GROWS"}  ${what}: ${percent}\n`;
    })
    .join("");
}
