/**
 * Owns what the figures of a soak mean: memory, descriptors and latency stay as they are after the first tenth.
 */
import { percentile } from "../bench/figure.ts";
import type { Slot } from "./slots.ts";
import { parts } from "./watch.ts";

const growthMax = 0.05;
/** Rounded up to whole pages of an allocator, a few of them are not growth. */
const growthBytesMin = 2 * 2 ** 20;
const descriptorsMin = 8;
/** Of medians of p99s; others share the machine. */
const slowdownMax = 0.5;
const slowdownMsMin = 5;

export type Judged = { what: string; from: number; to: number; growth: number; flat: boolean };

/**
 * The first third after the first tenth beside the last third, each by its median: one slot that was disturbed
 * decides nothing, a slope does.
 */
export function judge(slots: Slot[]): Judged[] {
  const after = slots.slice(Math.ceil(slots.length / 10));
  const third = Math.max(1, Math.floor(after.length / 3));
  const ends = [after.slice(0, third), after.slice(-third)] as const;
  const judged = (what: string, of: (slot: Slot) => number, most: number, least: number) => {
    const [from = 0, to = 0] = ends.map((slice) => percentile(slice.map(of), 50));
    const growth = from === 0 ? 0 : to / from - 1;
    return { what, from, to, growth, flat: growth <= most || to - from <= least };
  };
  return [
    ...parts.map((part) =>
      judged(`memory of ${part}`, ({ bytes }) => bytes[part], growthMax, growthBytesMin),
    ),
    ...parts.map((part) =>
      judged(
        ...([`descriptors of ${part}`, (slot: Slot) => slot.descriptors[part]] as const),
        ...([growthMax, descriptorsMin] as const),
      ),
    ),
    judged("p99 of exec", ({ execP99Ms }) => execP99Ms, slowdownMax, slowdownMsMin),
    judged("p99 of all", ({ allP99Ms }) => allP99Ms, slowdownMax, slowdownMsMin),
  ];
}

export function verdictText(judged: Judged[]): string {
  return judged
    .map(({ what, growth, flat }) => {
      const percent = `${growth < 0 ? "" : "+"}${(growth * 100).toFixed(1)} %`;
      return `${flat ? "flat " : "GROWS"}  ${what}: ${percent}\n`;
    })
    .join("");
}
