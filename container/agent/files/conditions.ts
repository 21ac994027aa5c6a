/**
 * Owns the conditions of a request: If-Match and If-None-Match against what is there now.
 * Does not own when they are looked at: a write looks before its body and again when it takes its place.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";

export type Conditions = { match: string | null; noneMatch: string | null };

export function conditionsOf(headers: Headers): Conditions {
  return { match: headers.get("if-match"), noneMatch: headers.get("if-none-match") };
}

/** `tag` is undefined where nothing is. */
export function demandConditions(
  { match, noneMatch }: Conditions,
  tag: string | undefined,
  shown: string,
): void {
  if (match !== null && !names(match, tag)) {
    throw changed(shown, tag === undefined ? "is not there" : "has changed", tag);
  }
  if (noneMatch !== null && names(noneMatch, tag)) {
    throw changed(shown, "is there, and the condition says that it must not be", tag);
  }
}

/** Whether a list of entity tags, or `*` for anything, names this one. */
export function names(list: string, tag: string | undefined): boolean {
  if (tag === undefined) return false;
  if (list.trim() === "*") return true;
  return list.split(",").some((one) => one.trim().replace(/^W\//, "") === tag);
}

function changed(shown: string, what: string, tag: string | undefined): BerthError {
  return new BerthError("file_changed", `${shown} ${what}; nothing was written`, {
    hint: "read it anew, then write with the entity tag that it has then",
    facts: { path: shown, etag: tag ?? null },
  });
}
