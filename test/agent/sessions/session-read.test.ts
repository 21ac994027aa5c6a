import fc from "fast-check";
import { expect, test } from "vitest";
import { readSessionCall, readSessionExecCall } from "../../../container/agent/sessions/read.ts";
import {
  agentSessionCallSchema,
  agentSessionExecCallSchema,
} from "../../../src/protocol/internal/agent.ts";

const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom("", "a\0b", "\ud800", "x".repeat(130_000), "s-1", "YQ==", "YQ=", "_a"),
);
const anything = fc.oneof(text, fc.integer(), fc.double(), fc.constantFrom(null, true, [], {}));
const mostly = (good: fc.Arbitrary<unknown>) => fc.oneof({ weight: 12, arbitrary: good }, anything);
const time = fc.constantFrom(1, 0, 3_600_000, 3_600_001, 1.5, 500);

const session = fc.record(
  {
    id: mostly(fc.constantFrom("s-1", "A_b", "-a", "", "x".repeat(64), "x".repeat(65))),
    cwd: mostly(fc.constantFrom("/", "a b", "", "é")),
    env: mostly(fc.dictionary(fc.constantFrom("A", "B_1", "1A"), text, { maxKeys: 2 })),
    commandTimeoutMs: mostly(time),
  },
  { requiredKeys: [] },
);
const exec = fc.record(
  {
    command: mostly(fc.constantFrom("true", "", "a\0b", "x".repeat(130_000), "é")),
    stdin: mostly(fc.constantFrom("", "YQ==", "YQ=", "é", "\ud800")),
    timeoutMs: mostly(time),
    maxOutputBytes: mostly(fc.constantFrom(0, -1, 1000, 16 * 1024 * 1024, 16 * 1024 * 1024 + 1)),
    encoding: mostly(fc.constantFrom("utf8", "base64")),
    execId: mostly(fc.constant("e")),
    requestId: mostly(fc.constant("r")),
    keep: mostly(fc.boolean()),
  },
  { requiredKeys: ["command", "execId", "requestId"] },
);
const odd = fc.record({ other: anything }, { requiredKeys: [] });
const also = (call: fc.Arbitrary<object>) =>
  fc.oneof(
    { weight: 9, arbitrary: call },
    fc.tuple(call, odd).map(([one, other]) => ({ ...one, ...other })),
    anything,
  );

test.each([
  ["a session", also(session), readSessionCall, agentSessionCallSchema],
  ["a command in one", also(exec), readSessionExecCall, agentSessionExecCallSchema],
] as const)(
  "[B11] the agent reads the call for %s as the schema does",
  (_, calls, read, schema) => {
    let taken = 0;
    let refused = 0;
    fc.assert(
      fc.property(calls, (value) => {
        const bySchema = schema.safeParse(value);
        let result: unknown;
        try {
          result = read(value);
        } catch {
          refused += 1;
          expect(bySchema.success).toBe(false);
          return;
        }
        taken += 1;
        expect(bySchema.error).toBeUndefined();
        expect(result).toEqual(bySchema.data);
      }),
      { numRuns: 2000 },
    );
    expect(taken).toBeGreaterThan(100);
    expect(refused).toBeGreaterThan(100);
  },
);
