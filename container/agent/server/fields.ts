/**
 * Owns reading one field of a call by hand: its type, its range, and a refusal that names it.
 * Does not own which fields a call has. The library of schemas would cost each running agent megabytes; tests hold
 * these readings and the schemas together.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";

export function objectOf(value: unknown, field: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    refuse(field, "must be an object");
  }
  return value as Record<string, unknown>;
}

/** The object that a whole body is, without a field that is not `known`. */
export function callOf(value: unknown, known: string[]): Record<string, unknown> {
  const call = objectOf(value, "body");
  for (const field of Object.keys(call)) {
    if (!known.includes(field)) refuse(field, "is not known");
  }
  return call;
}

export function textOf(value: unknown, field: string): string {
  if (typeof value !== "string") refuse(field, "must be a text");
  return value;
}

export function numberOf(
  value: unknown,
  field: string,
  { min, max }: { min: number; max: number },
): number {
  if (!Number.isInteger(value) || Number(value) < min || Number(value) > max) {
    refuse(field, `must be a whole number from ${min} to ${max}`);
  }
  return Number(value);
}

/** Of a query or a header: decimal digits and nothing else. */
export function wholeOf(text: string, field: string, range: { min: number; max: number }): number {
  return numberOf(/^\d+$/.test(text) ? Number(text) : text, field, range);
}

export function refuse(field: string, what: string): never {
  throw new BerthError("bad_request", `${field} ${what}`, { facts: { field } });
}

/** What becomes an argument, a variable or a path: text that the kernel takes, and no more of it than that. */
export function kernelTextOf(value: unknown, field: string, bytesMax: number): string {
  const text = textOf(value, field);
  if (text.includes("\0")) refuse(field, "must not contain a NUL");
  if (!text.isWellFormed()) refuse(field, "must be well-formed Unicode");
  if (Buffer.byteLength(text) > bytesMax) refuse(field, `must be at most ${bytesMax} bytes`);
  return text;
}
