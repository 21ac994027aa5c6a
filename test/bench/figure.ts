/**
 * Owns the form of a measured figure, and the arithmetic on samples.
 * Does not own how figures are shown (table.ts).
 */
import type { Progress } from "./progress.ts";

/** Ends something of a row's; what is left of it then, in words. */
export type End = () => Promise<string[]>;

/** What a row needs of the program around it. */
export type Bench = {
  isShort: boolean;
  progress: Progress;
  /** A new folder for a server of the row's own; removed at the end. */
  folder(): string;
  /** Ended at the end, whatever happens. */
  ends(end: End): void;
};

export type Figure = {
  row: string;
  /** In words, with units, as a person reads it. */
  measured: string;
  /** In words; left out where nothing is promised. */
  target?: string;
  /** Of two sides measured in turns in this run. */
  ratio?: number;
  /** Undefined: nothing to judge, or not judged in this form of the run. */
  met?: boolean;
  /** What keeps it from being better; told beside a missed target. */
  bound?: string;
  /** Everything that the words were made of. */
  raw: Record<string, unknown>;
};

export function percentile(samples: number[], percent: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  const at = Math.ceil((percent / 100) * sorted.length) - 1;
  const value = sorted[Math.min(Math.max(at, 0), sorted.length - 1)];
  if (value === undefined) throw new Error("no samples: nothing was measured");
  return value;
}

export function median(samples: number[]): number {
  return percentile(samples, 50);
}

/** Of times in ms. */
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
