import fc from "fast-check";
import { expect, test } from "vitest";
import { readExecCall } from "../../../container/agent/exec/read-call.ts";
import { agentExecCallSchema } from "../../../src/protocol/internal/agent.ts";

const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom(
    "",
    "a\0b",
    "\ud800",
    "x".repeat(130_000),
    "ü".repeat(70_000),
    "YQ==",
    "YQ=",
    "%",
  ),
);
const anything = fc.oneof(text, fc.integer(), fc.double(), fc.constantFrom(null, true, [], {}));
const mostly = (good: fc.Arbitrary<unknown>) => fc.oneof({ weight: 6, arbitrary: good }, anything);

const call = fc.record(
  {
    command: mostly(text),
    argv: mostly(fc.array(mostly(text), { maxLength: 4 })),
    cwd: mostly(text),
    env: mostly(
      fc.dictionary(
        mostly(fc.constantFrom("A", "B_1", "1A", "A B", "")) as fc.Arbitrary<string>,
        mostly(text),
      ),
    ),
    stdin: mostly(text),
    timeoutMs: mostly(fc.constantFrom(1, 0, 3_600_000, 3_600_001, 1.5, 500)),
    maxOutputBytes: mostly(fc.constantFrom(0, -1, 1000, 16 * 1024 * 1024, 16 * 1024 * 1024 + 1)),
    encoding: mostly(fc.constantFrom("utf8", "base64", "latin1")),
    execId: mostly(text),
    requestId: mostly(text),
    keep: mostly(fc.boolean()),
    other: anything,
  },
  { requiredKeys: ["execId", "requestId"] },
);
const rarelyOdd = fc.record(
  {
    command: text,
    cwd: text,
    env: fc.dictionary(fc.constantFrom("A", "B_1", "1A"), text),
    stdin: text,
    timeoutMs: fc.integer({ min: -1, max: 5 }),
    encoding: fc.constantFrom("utf8", "base64"),
    execId: fc.constant("e"),
    requestId: fc.constant("r"),
    keep: fc.boolean(),
  },
  { requiredKeys: ["command", "execId", "requestId"] },
);

test("[X20] the agent takes exactly the calls that the schema takes, and reads the same from them", () => {
  let taken = 0;
  let refused = 0;
  fc.assert(
    fc.property(fc.oneof(call, rarelyOdd), (value) => {
      const bySchema = agentExecCallSchema.safeParse(value);
      let read: unknown;
      try {
        read = readExecCall(value);
      } catch {
        refused += 1;
        expect(bySchema.success).toBe(false);
        return;
      }
      taken += 1;
      expect(bySchema.error).toBeUndefined();
      expect(read).toEqual(bySchema.data);
    }),
    { numRuns: 3000 },
  );
  expect(taken).toBeGreaterThan(100);
  expect(refused).toBeGreaterThan(100);
});
