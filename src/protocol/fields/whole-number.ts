/**
 * Whole numbers in queries: decimal digits only, not 0x10, 1e3 or " 5". RPC methods pass numbers.
 */
import { z } from "zod";

/** Use `prefault` for the default value: /openapi.json does not show a `default` here. */
export function wholeNumber(min: number, max: number) {
  const what = `must be a whole number from ${min} to ${max}`;
  return z.preprocess(parseDigits, z.int(what).min(min, what).max(max, what));
}

function parseDigits(value: unknown): unknown {
  if (typeof value !== "string") return value;
  return /^\d+$/.test(value) ? Number(value) : Number.NaN;
}
