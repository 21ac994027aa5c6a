/**
 * Owns how metadata changes: one request is one step, checked on the merged result, or nothing happens.
 * Does not own the form of keys and values (protocol/metadata.ts).
 */

import { BerthError } from "../../protocol/errors.ts";
import { utf8Bytes } from "../../protocol/fields/env.ts";
import { limits } from "../../protocol/limits.ts";

export type Versioned = { map: Readonly<Record<string, string>>; version: number };

export type Changed =
  | { next: Versioned; set: Record<string, string>; removed: string[] }
  | { refuse: BerthError };

export const noMetadata: Versioned = { map: {}, version: 0 };

export function patchMetadata(
  now: Versioned,
  patch: Readonly<Record<string, string | null>>,
  ifMatch: number | undefined,
): Changed {
  const map: Record<string, string> = { ...now.map };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null || value === "") delete map[key];
    else map[key] = value;
  }
  return change(now, map, ifMatch);
}

export function replaceMetadata(
  now: Versioned,
  to: Readonly<Record<string, string | null>>,
  ifMatch: number,
): Changed {
  const kept = Object.entries(to).filter(([, value]) => value !== null && value !== "");
  return change(now, Object.fromEntries(kept) as Record<string, string>, ifMatch);
}

function change(now: Versioned, map: Record<string, string>, ifMatch: number | undefined): Changed {
  if (ifMatch !== undefined && ifMatch !== now.version) {
    return {
      refuse: new BerthError(
        "version_mismatch",
        `The metadata has version ${now.version}, not ${ifMatch}.`,
        { hint: "Read it again and decide anew.", facts: { version: now.version } },
      ),
    };
  }
  const over = overLimit(map);
  if (over !== undefined) return { refuse: over };
  const set: Record<string, string> = {};
  for (const [key, value] of Object.entries(map)) if (now.map[key] !== value) set[key] = value;
  const removed = Object.keys(now.map).filter((key) => !Object.hasOwn(map, key));
  const same = removed.length === 0 && Object.keys(set).length === 0;
  return { next: same ? now : { map, version: now.version + 1 }, set, removed };
}

function overLimit(map: Record<string, string>): BerthError | undefined {
  const entries = Object.entries(map);
  if (entries.length > limits.metadataKeysMax) {
    return tooMuch(`${entries.length} keys`, `at most ${limits.metadataKeysMax} are kept`);
  }
  const bytes = entries.reduce((sum, [key, value]) => sum + key.length + utf8Bytes(value), 0);
  if (bytes <= limits.metadataBytesMax) return undefined;
  return tooMuch(`${bytes} bytes`, `at most ${limits.metadataBytesMax} are kept`);
}

function tooMuch(what: string, limit: string): BerthError {
  return new BerthError("bad_request", `metadata: it would have ${what}; ${limit}`, {
    hint: "Remove keys with null.",
    facts: { field: "metadata" },
  });
}
