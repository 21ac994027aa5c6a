import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  emptyMetadata,
  type MetadataChange,
  patchMetadata,
  replaceMetadata,
  type VersionedMetadata,
} from "../../../../src/core/metadata/patch.ts";

const key = fc.constantFrom("a", "b", "c", "owner", "constructor", "0", "10");
const value = fc.oneof(
  fc.constantFrom("", "x", "y"),
  fc.constant(null),
  fc.integer({ min: 1, max: 9_000 }).map((bytes) => "é".repeat(bytes / 2) + "v".repeat(bytes % 2)),
);
const change = fc.record({
  verb: fc.constantFrom("patch", "put"),
  pairs: fc.dictionary(key, value, { maxKeys: 5 }),
  /** How far `If-Match` is off; none without it. */
  off: fc.option(fc.constantFrom(0, 0, 0, 1, -1), { nil: undefined }),
});

/** The same rule, implemented with a list of pairs. */
function expected(
  now: VersionedMetadata,
  change: { verb: string; pairs: object; off?: number | undefined },
) {
  if (change.off) return "version_mismatch";
  const given = Object.entries(change.pairs) as [string, string | null][];
  const stays = ([name]: [string, unknown]) =>
    change.verb === "patch" && !given.some(([k]) => k === name);
  const next = [...Object.entries(now.map).filter(stays), ...given.filter(([, v]) => v)].sort();
  if (Buffer.byteLength(next.flat().join("")) > 16 * 1024) return "bad_request";
  const same = JSON.stringify(next) === JSON.stringify(Object.entries(now.map).sort());
  return { pairs: next, version: now.version + (same ? 0 : 1) };
}

describe("any sequence of changes", () => {
  it("[N1] agrees with a model that keeps a list of pairs", () => {
    const outcomes = new Map<string, number>();
    fc.assert(
      fc.property(fc.array(change, { maxLength: 12 }), (changes) => {
        let now: VersionedMetadata = emptyMetadata;
        for (const change of changes) {
          const ifMatch = change.off === undefined ? undefined : now.version + change.off;
          const got: MetadataChange =
            change.verb === "patch"
              ? patchMetadata(now, change.pairs, ifMatch)
              : replaceMetadata(now, change.pairs, ifMatch ?? now.version);
          const said =
            "refuse" in got
              ? got.refuse.code
              : { pairs: Object.entries(got.next.map).sort(), version: got.next.version };
          expect(said).toEqual(expected(now, change));
          const outcome = typeof said === "string" ? said : "changed";
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
          if (!("refuse" in got)) now = replay(now, got);
        }
      }),
      { numRuns: 500 },
    );
    expect([...outcomes.keys()].sort()).toEqual(["bad_request", "changed", "version_mismatch"]);
  });
});

/** Applying the returned change to the old map must give the new one. */
function replay(
  now: VersionedMetadata,
  got: Exclude<MetadataChange, { refuse: unknown }>,
): VersionedMetadata {
  const left = Object.entries(now.map).filter(([name]) => !got.removed.includes(name));
  expect({ ...Object.fromEntries(left), ...got.set }).toEqual(got.next.map);
  return got.next;
}
