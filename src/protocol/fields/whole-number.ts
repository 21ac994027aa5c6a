/**
 * Owns the one form of a whole number in a query: decimal digits and nothing else, neither 0x10 nor 1e3 nor " 5".
 * Does not own fields of bodies: JSON has numbers of its own. Who calls by methods brings a number here too.
 */
import { z } from "zod";

/** What holds where it is left out is said by `prefault`: /openapi.json would not show a `default`. */
export function wholeNumber(min: number, max: number) {
  const what = `must be a whole number from ${min} to ${max}`;
  return z.preprocess(read, z.int(what).min(min, what).max(max, what));
}

function read(told: unknown): unknown {
  if (typeof told !== "string") return told;
  return /^\d+$/.test(told) ? Number(told) : Number.NaN;
}
