import fc from "fast-check";
import { expect, test } from "vitest";
import { readFrame } from "../../../container/agent/terminals/frames.ts";
import {
  readConnect,
  readSize,
  readTerminalCall,
} from "../../../container/agent/terminals/read-calls.ts";
import { agentTerminalCallSchema } from "../../../src/protocol/internal/agent.ts";
import { connectQuerySchema, terminalResizeSchema } from "../../../src/protocol/terminal.ts";

const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom("", "t1", "a_b-C", "-a", "a\0b", "\ud800", "x".repeat(65), "x".repeat(131_072)),
);
const anything = fc.oneof(text, fc.integer(), fc.double(), fc.constantFrom(null, true, [], {}));
const mostly = (good: fc.Arbitrary<unknown>) => fc.oneof({ weight: 9, arbitrary: good }, anything);
const edge = mostly(fc.constantFrom(1, 80, 1000, 0, 1001, 1.5));
const size = fc.record({ cols: edge, rows: edge }, { requiredKeys: [] });
const call = fc.record(
  {
    id: mostly(fc.constantFrom("t1", "a_b-C", "x".repeat(64))),
    cols: edge,
    rows: edge,
    cwd: mostly(fc.constantFrom("/", "folder")),
    env: mostly(fc.dictionary(fc.constantFrom("A", "B_1", "1A"), text, { maxKeys: 2 })),
    argv: mostly(fc.array(mostly(fc.constantFrom("sh", "-c")), { maxLength: 3 })),
    endsWithLease: mostly(fc.boolean()),
  },
  { requiredKeys: ["id"] },
);
const others = fc.oneof({ weight: 9, arbitrary: fc.constant({}) }, fc.constant({ other: 1 }));
const query = fc.record(
  {
    after: fc.constantFrom("0", "17", "9007199254740991", "9007199254740992", "-1", "1.5", "x"),
    mode: fc.constantFrom("writer", "viewer", "other", ""),
    more: fc.constant("1"),
  },
  { requiredKeys: [] },
);

type Schema = { safeParse(value: unknown): { success: boolean; data?: unknown } };

function agree(values: fc.Arbitrary<unknown>, schema: Schema, read: (value: never) => unknown) {
  let taken = 0;
  let refused = 0;
  fc.assert(
    fc.property(values, (value) => {
      const bySchema = schema.safeParse(value);
      let byHand: unknown;
      try {
        byHand = read(value as never);
      } catch {
        refused += 1;
        expect(bySchema.success).toBe(false);
        return;
      }
      taken += 1;
      expect(bySchema.success).toBe(true);
      expect(byHand).toEqual(bySchema.data);
    }),
    { numRuns: 2000 },
  );
  expect(taken).toBeGreaterThan(50);
  expect(refused).toBeGreaterThan(50);
}

test("[T15] the agent takes exactly the calls of terminals that the schemas take, and reads the same", () => {
  const whole = fc.tuple(call, others).map(([one, other]) => ({ ...one, ...other }));
  agree(
    fc.oneof({ weight: 9, arbitrary: whole }, anything),
    agentTerminalCallSchema,
    readTerminalCall,
  );
  agree(fc.oneof({ weight: 9, arbitrary: size }, anything), terminalResizeSchema, readSize);
  agree(query, connectQuerySchema, (value: Record<string, string>) =>
    readConnect(new URLSearchParams(value)),
  );
});

test("[T15] frames of viewers are read whole, or refused by the field that is wrong", () => {
  expect(readFrame('{"type":"ack","offset":7}')).toEqual({ type: "ack", offset: 7 });
  const resize = { type: "resize", cols: 1000, rows: 1 };
  expect(readFrame(JSON.stringify(resize))).toEqual(resize);
  fc.assert(
    fc.property(anything, fc.constantFrom("type", "cols", "rows", "other"), (value, field) => {
      const frame = { ...resize, [field]: value };
      const fits = field !== "other" && JSON.stringify(frame) === JSON.stringify(resize);
      const isSize = field === "cols" || field === "rows";
      const isRight =
        isSize && Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 1000;
      if (fits || isRight)
        expect(readFrame(JSON.stringify(frame))).toMatchObject({ [field]: value });
      else expect(() => readFrame(JSON.stringify(frame))).toThrow(field);
    }),
  );
});
