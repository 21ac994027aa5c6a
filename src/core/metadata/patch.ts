/** Changes metadata in one step, which is checked on the merged result and applied completely or not at all. */
import { BerthError } from "../../protocol/errors.ts";
import { utf8Bytes } from "../../protocol/fields/env.ts";
import { limits } from "../../protocol/limits.ts";

export type VersionedMetadata = { map: Readonly<Record<string, string>>; version: number };

export type MetadataChange =
  | { next: VersionedMetadata; set: Record<string, string>; removed: string[] }
  | { refuse: BerthError };

export const emptyMetadata: VersionedMetadata = { map: {}, version: 0 };

export function patchMetadata(
  now: VersionedMetadata,
  patch: Readonly<Record<string, string | null>>,
  ifMatch: number | undefined,
): MetadataChange {
  const map: Record<string, string> = { ...now.map };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null || value === "") delete map[key];
    else map[key] = value;
  }
  return changeMetadata(now, map, ifMatch);
}

export function replaceMetadata(
  now: VersionedMetadata,
  to: Readonly<Record<string, string | null>>,
  ifMatch: number,
): MetadataChange {
  const kept = Object.entries(to).filter(([, value]) => value !== null && value !== "");
  return changeMetadata(now, Object.fromEntries(kept) as Record<string, string>, ifMatch);
}

function changeMetadata(
  now: VersionedMetadata,
  map: Record<string, string>,
  ifMatch: number | undefined,
): MetadataChange {
  if (ifMatch !== undefined && ifMatch !== now.version) {
    return {
      refuse: new BerthError(
        "version_mismatch",
        `The metadata has version ${now.version}, not ${ifMatch}.`,
        { hint: "Read it again and repeat the change.", facts: { version: now.version } },
      ),
    };
  }
  const over = exceedsLimitError(map);
  if (over !== undefined) return { refuse: over };
  const set: Record<string, string> = {};
  for (const [key, value] of Object.entries(map)) if (now.map[key] !== value) set[key] = value;
  const removed = Object.keys(now.map).filter((key) => !Object.hasOwn(map, key));
  const same = removed.length === 0 && Object.keys(set).length === 0;
  return { next: same ? now : { map, version: now.version + 1 }, set, removed };
}

function exceedsLimitError(map: Record<string, string>): BerthError | undefined {
  const entries = Object.entries(map);
  if (entries.length > limits.metadataKeysMax) {
    return limitError(`${entries.length} keys`, `at most ${limits.metadataKeysMax} are kept`);
  }
  const bytes = entries.reduce((sum, [key, value]) => sum + key.length + utf8Bytes(value), 0);
  if (bytes <= limits.metadataBytesMax) return undefined;
  return limitError(`${bytes} bytes`, `at most ${limits.metadataBytesMax} are kept`);
}

function limitError(what: string, limit: string): BerthError {
  return new BerthError("bad_request", `The metadata would have ${what}; ${limit}.`, {
    hint: "Remove keys with null.",
    facts: { field: "metadata" },
  });
}
