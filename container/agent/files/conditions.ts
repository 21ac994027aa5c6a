/**
 * Checks the conditions of a request, If-Match and If-None-Match, against what exists now. A write checks before its body
 * and again when it moves the file into place.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";

export type Conditions = { match: string | null; noneMatch: string | null };

export function conditionsOf(headers: Headers): Conditions {
  return { match: headers.get("if-match"), noneMatch: headers.get("if-none-match") };
}

/** `tag` is the entity tag of what exists; undefined: nothing does. */
export function assertConditions(
  { match, noneMatch }: Conditions,
  tag: string | undefined,
  shown: string,
): void {
  if (match !== null && !matchesTag(match, tag)) {
    throw changed(shown, tag === undefined ? "does not exist" : "has changed", tag);
  }
  if (noneMatch !== null && matchesTag(noneMatch, tag)) {
    throw changed(shown, "exists, which If-None-Match excludes", tag);
  }
}

/** Whether a list of entity tags, or `*` for any, contains this one. */
export function matchesTag(list: string, tag: string | undefined): boolean {
  if (tag === undefined) return false;
  if (list.trim() === "*") return true;
  return list.split(",").some((listed) => listed.trim().replace(/^W\//, "") === tag);
}

function changed(shown: string, what: string, tag: string | undefined): BerthError {
  return new BerthError("file_changed", `${shown} ${what}. Nothing was written.`, {
    hint: "Read it again, then write with its new entity tag.",
    facts: { path: shown, etag: tag ?? null },
  });
}
