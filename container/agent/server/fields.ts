/**
 * Reads headers and refuses calls by the name of a field. Bodies and queries are not checked again: the object has
 * checked them against their schemas, and the library of schemas would cost each agent megabytes.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";

export function refuse(field: string, problem: string): never {
  throw new BerthError("bad_request", `${field} ${problem}`, { facts: { field } });
}

export function methodNotAllowed(...allow: string[]): BerthError {
  return new BerthError("method_not_allowed", `Use ${allow.join(" or ")}.`, { facts: { allow } });
}

/** Undefined: the header is absent. Fences and generations are compared, so that a malformed one must not pass. */
export function readNumberHeader(headers: Headers, name: string): number | undefined {
  const text = headers.get(name);
  if (text === null) return undefined;
  const number = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(number)) {
    refuse(name, "must be a whole number");
  }
  return number;
}

/** The error of a bound that is reached. */
export function tooMany(limit: number, what: string, hint: string): BerthError {
  return new BerthError("too_many", `${limit} ${what}.`, { hint, facts: { limit } });
}
