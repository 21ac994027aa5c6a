import { describe, expect, it } from "vitest";
import {
  emptyMetadata,
  patchMetadata,
  replaceMetadata,
  type VersionedMetadata,
} from "../../../../src/core/metadata/patch.ts";
import { limits } from "../../../../src/protocol/limits.ts";
import { metadataPatchSchema } from "../../../../src/protocol/metadata.ts";

type Patch = Record<string, string | null>;

const some: VersionedMetadata = Object.freeze({
  map: Object.freeze({ owner: "ci", stage: "build" }),
  version: 7,
});

function patched(now: VersionedMetadata, patch: Patch, ifMatch?: number): VersionedMetadata {
  return accepted(patchMetadata(now, patch, ifMatch)).next;
}

function accepted(changed: ReturnType<typeof patchMetadata>) {
  if ("refuse" in changed) throw changed.refuse;
  return changed;
}

function refusal(changed: ReturnType<typeof patchMetadata>) {
  if ("refuse" in changed) return changed.refuse;
  throw new Error(`it was to be refused, but became version ${changed.next.version}`);
}

/** `count` keys whose keys and values are `bytes` bytes together. */
function mapOf(count: number, bytes: number): Record<string, string> {
  const keys = Array.from({ length: count }, (_, n) => `k${String(n).padStart(2, "0")}`);
  const map = Object.fromEntries(
    keys.map((key) => [key, "v".repeat(Math.floor(bytes / count) - 3)]),
  );
  const last = keys.at(-1) ?? "";
  map[last] += "v".repeat(bytes - count * Math.floor(bytes / count));
  return map;
}

describe("a patch", () => {
  it("[N1] sets what is given, removes null and the empty string, and leaves the rest", () => {
    const full: VersionedMetadata = { map: { a: "1", b: "2", c: "3", d: "4" }, version: 3 };
    expect(patched(full, { a: "x", b: null, c: "", e: "5" })).toEqual({
      map: { a: "x", d: "4", e: "5" },
      version: 4,
    });
  });

  it("[N1] starts from an empty map of version 0", () => {
    expect(emptyMetadata).toEqual({ map: {}, version: 0 });
    expect(patched(emptyMetadata, { owner: "ci" })).toEqual({ map: { owner: "ci" }, version: 1 });
  });

  it("[N1] treats names of object properties like any other key", () => {
    const names = { constructor: "a", toString: "b", hasOwnProperty: "c" };
    const next = patched(emptyMetadata, names);
    expect(next).toEqual({ map: names, version: 1 });
    expect(accepted(patchMetadata(some, { valueOf: null }, undefined)).next).toBe(some);
    expect(patched(next, { toString: null }).map).toEqual({
      constructor: "a",
      hasOwnProperty: "c",
    });
  });

  it.each<[string, Patch]>([
    ["nothing", {}],
    ["a value that is there", { owner: "ci" }],
    ["the removal of what is not there", { other: null, more: "" }],
  ])("[N2] %s does not change the version", (_, patch) => {
    const changed = accepted(patchMetadata(some, patch, undefined));
    expect(changed).toEqual({ next: some, set: {}, removed: [] });
  });

  it("[N2] raises the version by one, however much it changes", () => {
    expect(patched(some, { owner: null, stage: "test", more: "1" }).version).toBe(8);
  });

  it("[N10] never changes the map that it starts from", () => {
    const before = structuredClone(some);
    patched(some, { owner: null, stage: "test", more: "1" });
    accepted(replaceMetadata(some, {}, 7));
    expect(some).toEqual(before);
  });

  it("[N16] returns exactly what was set and what was removed", () => {
    const changed = accepted(
      patchMetadata(some, { owner: "ci", stage: null, more: "1", no: null }, undefined),
    );
    expect(changed).toMatchObject({ set: { more: "1" }, removed: ["stage"] });
  });
});

describe("limits", () => {
  it("[N5] stores 64 keys and refuses the 65th, counted on the merged result", () => {
    const full: VersionedMetadata = { map: mapOf(64, 640), version: 1 };
    expect(refusal(patchMetadata(full, { more: "1" }, undefined))).toMatchObject({
      code: "bad_request",
      message: "The metadata would have 65 keys; at most 64 are kept.",
      facts: { field: "metadata" },
    });
    expect(Object.keys(patched(full, { more: "1", k00: null }).map)).toHaveLength(64);
    const removals = Object.fromEntries(Object.keys(full.map).map((key) => [key, null]));
    expect(patched(full, { ...removals, more: "1" }).map).toEqual({ more: "1" });
  });

  it("[N5] stores 16 KiB of keys and values and refuses one byte more", () => {
    const full = patched(emptyMetadata, mapOf(32, limits.metadataBytesMax));
    expect(full.version).toBe(1);
    const over = refusal(
      patchMetadata(emptyMetadata, mapOf(32, limits.metadataBytesMax + 1), undefined),
    );
    expect(over.message).toBe("The metadata would have 16385 bytes; at most 16384 are kept.");
    expect(refusal(patchMetadata(full, { x: "y" }, undefined)).code).toBe("bad_request");
    expect(patched(full, { k00: null, x: "y" }).version).toBe(2);
  });

  it("[N5] counts bytes of UTF-8", () => {
    const wide = Object.fromEntries(
      Array.from({ length: 21 }, (_, n) => [String.fromCharCode(97 + n), "é".repeat(400)]),
    );
    expect(refusal(patchMetadata(emptyMetadata, wide, undefined)).message).toContain("16821 bytes");
  });

  it.each<[string, unknown, boolean]>([
    ["a key of 128 bytes", { ["k".repeat(128)]: "v" }, true],
    ["a key of 129 bytes", { ["k".repeat(129)]: "v" }, false],
    ["the empty key", { "": "v" }, false],
    ["every letter that a key may have", { "aZ09._:/-": "v" }, true],
    ["a space in a key", { "a b": "v" }, false],
    ["a letter with an accent in a key", { é: "v" }, false],
    ["a value of 1024 bytes", { k: "é".repeat(512) }, true],
    ["a value of 1025 bytes", { k: `${"é".repeat(512)}v` }, false],
    ["a lone surrogate", { k: "\ud800" }, false],
    ["a number", { k: 1 }, false],
    ["a map in the map", { k: { l: "v" } }, false],
    ["a list", ["v"], false],
    ["null, which removes", { k: null }, true],
  ])("[N5] validates the form of a patch: %s", (_, value, isValid) => {
    expect(metadataPatchSchema.safeParse(value).success).toBe(isValid);
  });

  it("[N5] __proto__ never gets into the map", () => {
    const patch = metadataPatchSchema.parse(JSON.parse('{"__proto__": "v", "k": "v"}'));
    const next = patched(emptyMetadata, patch);
    expect(Object.getOwnPropertyNames(next.map)).toEqual(["k"]);
    expect(Object.getPrototypeOf(next.map)).toBe(Object.prototype);
  });

  it("[N6] a patch that is refused in part changes nothing", () => {
    const full: VersionedMetadata = Object.freeze({
      map: Object.freeze(mapOf(64, 640)),
      version: 5,
    });
    const before = structuredClone(full);
    const changed = patchMetadata(full, { k00: "changed", k01: null, a: "1", b: "2" }, undefined);
    expect(Object.keys(changed)).toEqual(["refuse"]);
    expect(full).toEqual(before);
  });
});

describe("conditions", () => {
  it("[N12] refuses a change of another version and names the present one", () => {
    expect(patched(some, { more: "1" }, 7).version).toBe(8);
    for (const ifMatch of [0, 6, 8]) {
      expect(refusal(patchMetadata(some, { more: "1" }, ifMatch))).toMatchObject({
        code: "version_mismatch",
        facts: { version: 7 },
      });
    }
    expect(refusal(patchMetadata(some, {}, 6)).code).toBe("version_mismatch");
    expect(refusal(patchMetadata(emptyMetadata, { more: "1" }, 1)).code).toBe("version_mismatch");
  });

  it("[N20] a replacement keeps nothing and needs the present version", () => {
    expect(accepted(replaceMetadata(some, { a: "1", b: null, c: "" }, 7))).toEqual({
      next: { map: { a: "1" }, version: 8 },
      set: { a: "1" },
      removed: ["owner", "stage"],
    });
    expect(refusal(replaceMetadata(some, { a: "1" }, 6)).code).toBe("version_mismatch");
    expect(accepted(replaceMetadata(some, { ...some.map }, 7)).next).toBe(some);
    expect(accepted(replaceMetadata(some, {}, 7)).next).toEqual({ map: {}, version: 8 });
    expect(refusal(replaceMetadata(some, mapOf(65, 650), 7)).code).toBe("bad_request");
  });
});
