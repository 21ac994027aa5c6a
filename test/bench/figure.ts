/**
 * The form of a measured figure, common kinds of figures, and statistics on samples. See report.ts for how figures are
 * printed.
 */
import type { Progress } from "./progress.ts";

/** Ends something that a row started and returns a description of everything that is left. */
export type End = () => Promise<string[]>;

/** What a row gets from the bench. */
export type Bench = {
  isShort: boolean;
  progress: Progress;
  /** Creates a folder that is removed at the end of the row. */
  folder(): string;
  /** Registers something to end after the row, even if the row fails. */
  ends(end: End): void;
  /** The same for what leaves nothing behind. */
  closes(close: () => unknown): void;
};

export type Figure = {
  row: string;
  /** For people, with units. */
  measured: string;
  /** For people; absent if nothing is promised. */
  target?: string;
  /** The ratio of two sides that were measured in turns in this run. */
  ratio?: number;
  /** Undefined if there is nothing to judge, or if a short run does not judge it. */
  met?: boolean;
  /** What limits the figure; printed with a missed target. */
  bound?: string;
  /** All values behind the text. */
  raw: Record<string, unknown>;
};

export function percentile(samples: number[], percent: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  const index = Math.ceil((percent / 100) * sorted.length) - 1;
  const value = sorted[Math.min(Math.max(index, 0), sorted.length - 1)];
  if (value === undefined) throw new Error("no samples: nothing was measured");
  return value;
}

export function median(samples: number[]): number {
  return percentile(samples, 50);
}

/** Statistics on times in ms. */
export function spread(samples: number[]) {
  return {
    count: samples.length,
    median: round(median(samples)),
    p90: round(percentile(samples, 90)),
    p99: round(percentile(samples, 99)),
    max: round(Math.max(...samples)),
  };
}

export function round(value: number, digits = 3): number {
  return Number(value.toFixed(digits));
}

export function inMs(digits: number): (ms: number) => string {
  return (ms) => `${ms.toFixed(digits)} ms`;
}

type ComparisonOptions = { ratioMax?: number; format?: (median: number) => string };

/** Compares the medians of two sides; the first one is measured against the second. Judged only with `ratioMax`. */
export function comparison(
  row: string,
  sides: Record<string, number[]>,
  { ratioMax, format = inMs(2) }: ComparisonOptions = {},
): Figure {
  const [own = Number.NaN, other = Number.NaN] = Object.values(sides).map(median);
  const ratio = own / other;
  return {
    row,
    measured: `${format(own)} against ${format(other)}`,
    ...(ratioMax === undefined ? {} : { target: `≤ ${ratioMax} ×`, met: ratio <= ratioMax }),
    ratio: round(ratio),
    raw: Object.fromEntries(Object.entries(sides).map(([name, values]) => [name, spread(values)])),
  };
}

export function rateFigure(row: string, perSecond: number, min: number): Figure {
  return {
    row,
    measured: `${perSecond.toFixed(0)}/s`,
    target: `≥ ${min}/s`,
    met: perSecond >= min,
    raw: { perSecond: round(perSecond, 1) },
  };
}

/** A target for an absolute value, which a short run does not judge. */
export function targetOf({ isShort }: Bench, value: number, max: number, unit: string) {
  return { target: `≤ ${max} ${unit}`, ...(isShort ? {} : { met: value <= max }) };
}
