/** Whole numbers in bodies and in queries, and what else queries have in common. */
import { z } from "zod";
import { plainTextPattern } from "./forms.ts";

export function wholeNumber(min: number, max: number) {
  const what = `must be a whole number from ${min} to ${max}`;
  return z.int(what).min(min, what).max(max, what);
}

/**
 * In a query: decimal digits only, not 0x10, 1e3 or " 5". RPC methods pass numbers. Use `prefault` for the default value:
 * /openapi.json does not show a `default` here.
 */
export function queryNumber(min: number, max: number) {
  return z.preprocess(parseDigits, wholeNumber(min, max));
}

/** `what`: the entries that are listed, as the first word of the description. */
export function pageLimit(what: string, max: number, byDefault: number) {
  return queryNumber(1, max).prefault(byDefault).describe(`${what} per page.`);
}

/** Text that is shown to people: names, paths and the like. */
export function plainText(charsMax: number) {
  return z
    .string()
    .max(charsMax)
    .regex(plainTextPattern, "must not contain control characters")
    .refine((text) => text.isWellFormed(), "must be well-formed Unicode");
}

/** The description of a cursor in a query. */
export const nextCursor = "The `nextCursor` of an earlier page.";

function parseDigits(value: unknown): unknown {
  if (typeof value !== "string") return value;
  return /^\d+$/.test(value) ? Number(value) : value;
}

export const flagSchema = z
  .enum(["0", "1", "true", "false"], "must be true or false")
  .transform((text) => text === "1" || text === "true");
