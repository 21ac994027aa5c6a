/**
 * Reads the headers that make a request conditional or partial: If-Match and If-None-Match, which a write checks before
 * its body and again when it moves the file into place, and Range.
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

type Range = { start: number; end: number };

/**
 * Undefined: the whole file, also for several ranges or other units, as the standard allows. "outside": the file has no
 * byte of the range. `end` is the byte after the last one.
 */
export function rangeOf(header: string | null, size: number): Range | "outside" | undefined {
  const [, first = "", last = ""] = /^bytes=\s*(\d*)\s*-\s*(\d*)\s*$/i.exec(header ?? "") ?? [];
  if (first === "" && last === "") return undefined;
  if (first === "") {
    const length = Math.min(Number(last), size);
    return length === 0 ? "outside" : { start: size - length, end: size };
  }
  const start = Number(first);
  const end = last === "" ? size : Math.min(Number(last) + 1, size);
  if (last !== "" && Number(last) < start) return undefined;
  return start >= size ? "outside" : { start, end };
}
