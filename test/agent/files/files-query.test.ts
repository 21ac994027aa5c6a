import fc from "fast-check";
import { expect, test } from "vitest";
import type { z } from "zod";
import { readMkdirCall, readMoveCall } from "../../../container/agent/files/calls.ts";
import {
  readFileQuery,
  readListQuery,
  readPutQuery,
  readRemoveQuery,
  readWatchQuery,
} from "../../../container/agent/files/query.ts";
import {
  fileQuerySchema,
  listQuerySchema,
  mkdirCallSchema,
  moveCallSchema,
  putQuerySchema,
  removeQuerySchema,
  watchQuerySchema,
} from "../../../src/protocol/file.ts";

const text = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.constantFrom("", "a\0b", "ü/ü", "x".repeat(4095), "ü".repeat(2048), "a b+c&d=e%", "\ud800"),
);
const small = fc.constantFrom(
  "0",
  "1",
  "5",
  "64",
  "65",
  "5000",
  "5001",
  "1.5",
  "-1",
  "x",
  " 7",
  "",
);
const flag = fc.constantFrom("0", "1", "true", "false", "yes", "");
const mode = fc.constantFrom("644", "0755", "7777", "888", "64", "");
const session = fc.constantFrom("s1", "a-b_c", "-x", "", "ü");
const query = fc.record(
  {
    path: text,
    session,
    mkdirs: flag,
    recursive: flag,
    mode,
    depth: small,
    limit: small,
    cursor: text,
  },
  { requiredKeys: [] },
);
const anything = fc.oneof(text, fc.boolean(), fc.constantFrom(null, 1, {}));
const mostly = (good: fc.Arbitrary<unknown>) => fc.oneof({ weight: 5, arbitrary: good }, anything);
const call = fc.record(
  {
    path: mostly(fc.constantFrom("a", "/b/c")),
    from: mostly(fc.constant("a")),
    to: mostly(fc.constant("b")),
    session: mostly(session),
    parents: mostly(fc.boolean()),
    overwrite: mostly(fc.boolean()),
    mode: mostly(mode),
  },
  { requiredKeys: ["path", "from", "to"] },
);

type Pair = [z.ZodType, (value: never) => unknown];

/** With fields of this one alone, so that many are taken. */
function pick(value: Record<string, unknown>, known: string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([name]) => known.includes(name)));
}

function holdTogether(
  values: fc.Arbitrary<Record<string, unknown>>,
  [schema, reading]: Pair,
  known: string[],
  write: (value: Record<string, unknown>) => unknown,
) {
  let [taken, refused] = [0, 0];
  fc.assert(
    fc.property(values, fc.boolean(), (given, all) => {
      const value = all ? given : pick(given, known);
      const bySchema = schema.safeParse(value);
      let read: unknown;
      try {
        read = reading(write(value) as never);
      } catch {
        refused += 1;
        expect(bySchema.success, JSON.stringify(value)).toBe(false);
        return;
      }
      taken += 1;
      expect(bySchema.error).toBeUndefined();
      expect(read).toEqual(bySchema.data);
    }),
    { numRuns: 1500 },
  );
  expect(taken).toBeGreaterThan(30);
  expect(refused).toBeGreaterThan(30);
}

const queries: [string, Pair, string[]][] = [
  ["files", [fileQuerySchema, readFileQuery], ["path", "session"]],
  ["put", [putQuerySchema, readPutQuery], ["path", "session", "mkdirs", "mode"]],
  ["remove", [removeQuerySchema, readRemoveQuery], ["path", "session", "recursive"]],
  ["list", [listQuerySchema, readListQuery], ["path", "session", "depth", "limit", "cursor"]],
  ["watch", [watchQuerySchema, readWatchQuery], ["path", "session", "recursive"]],
];

test.each(queries)(
  "[I15] the agent reads of a query of %s exactly what the schema reads",
  (_, pair, known) => {
    // A half of a surrogate pair has no form in a query.
    const whole = query.filter((it) => Object.values(it).every((one) => one.isWellFormed()));
    holdTogether(
      whole,
      pair,
      known,
      (value) => `?${new URLSearchParams(value as Record<string, string>)}`,
    );
  },
);

const calls: [string, Pair, string[]][] = [
  ["mkdir", [mkdirCallSchema, readMkdirCall], ["path", "session", "parents", "mode"]],
  ["move", [moveCallSchema, readMoveCall], ["from", "to", "session", "overwrite"]],
];

test.each(calls)(
  "[I15] the agent reads of a call of %s exactly what the schema reads",
  (_, pair, known) => holdTogether(call, pair, known, (value) => value),
);

test("[I15] bytes that are no UTF-8 and broken escapes are refused, not replaced", () => {
  for (const path of ["%ff", "a%c3", "%", "%zz", "%ed%a0%80"]) {
    expect(() => readFileQuery(`?path=${path}`), path).toThrow("path must be UTF-8");
  }
  expect(readFileQuery("?path=a%2Fb+c%2Bd")).toEqual({ path: "a/b c+d" });
});
