import fc from "fast-check";
import { expect, test } from "vitest";
import type { z } from "zod";
import {
  readLogsQuery,
  readProcessCall,
  readProcessesQuery,
  readSignalCall,
  readStdinQuery,
  readWaitQuery,
} from "../../../container/agent/processes/read.ts";
import { agentProcessCallSchema } from "../../../src/protocol/internal/agent.ts";
import {
  logsQuerySchema,
  processesQuerySchema,
  signalCallSchema,
  signalNames,
  stdinQuerySchema,
  waitQuerySchema,
} from "../../../src/protocol/process.ts";

const text = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("", "a\0b", "\ud800", "x"));
const anything = fc.oneof(text, fc.integer(), fc.double(), fc.constantFrom(null, true, [], {}));
const mostly = (good: fc.Arbitrary<unknown>) => fc.oneof({ weight: 12, arbitrary: good }, anything);
const numbers = fc.constantFrom(
  ...["0", "1", "7", "1e3", " 5 ", "-1", "1.5", "", "x", "0x10", "9007199254740991"],
  ...["9007199254740992", "3600000", "3600001", "Infinity"],
);
const handles = fc.constantFrom("p1", "a-b_c", "-a", "", "x".repeat(64), "x".repeat(65));

const processCall = fc.record(
  {
    command: mostly(fc.constantFrom("true", "echo hi")),
    argv: mostly(fc.array(text, { minLength: 1, maxLength: 3 })),
    cwd: mostly(text),
    env: mostly(fc.dictionary(fc.constantFrom("A", "B_1", "1A"), text)),
    timeoutMs: mostly(fc.constantFrom(1, 0, 604_800_000, 604_800_001, 1.5)),
    logBytesMax: mostly(fc.constantFrom(65_536, 65_535, 1_073_741_824, 1_073_741_825)),
    onFull: mostly(fc.constantFrom("drop", "block", "wait")),
    endsWithLease: mostly(fc.boolean()),
    id: mostly(handles),
    name: mostly(handles),
    ifRunning: mostly(fc.constantFrom("refuse", "replace", "join")),
    other: anything,
  },
  { requiredKeys: ["id"] },
);

const rarelyOdd = fc.record(
  {
    command: fc.constant("true"),
    cwd: text,
    timeoutMs: fc.integer({ min: 0, max: 5 }),
    logBytesMax: fc.integer({ min: 65_535, max: 65_540 }),
    onFull: fc.constantFrom("drop", "block"),
    name: handles,
    ifRunning: fc.constantFrom("refuse", "replace"),
    id: handles,
  },
  { requiredKeys: ["command", "id"] },
);

const query = <T extends Record<string, fc.Arbitrary<string>>>(fields: T) =>
  fc.record({ ...fields, other: fc.constant("1") }, { requiredKeys: [] });

type Case = {
  schema: z.ZodType;
  read: (value: never) => unknown;
  values: fc.Arbitrary<unknown>;
};

const asQuery = (value: unknown) => new URLSearchParams(value as Record<string, string>);
const cases: Record<string, Case> = {
  start: {
    schema: agentProcessCallSchema,
    read: readProcessCall,
    values: fc.oneof(processCall, rarelyOdd),
  },
  signal: {
    schema: signalCallSchema,
    read: (value) => ({ signal: readSignalCall(value) }),
    values: fc.record(
      { signal: mostly(fc.constantFrom(...signalNames, "SIGSEGV", "TERM", "toString")) },
      { requiredKeys: [] },
    ),
  },
  list: {
    schema: processesQuerySchema,
    read: (value) => readProcessesQuery(asQuery(value)),
    values: query({
      ...{ state: fc.constantFrom("running", "exited", "dead"), session: handles },
      name: handles,
    }),
  },
  logs: {
    schema: logsQuerySchema,
    read: (value) => readLogsQuery(asQuery(value)),
    values: query({
      ...{ after: numbers, offset: numbers, follow: fc.constantFrom("0", "1", "2") },
      stream: fc.constantFrom("stdout", "stderr", "stdin"),
    }),
  },
  stdin: {
    schema: stdinQuerySchema.transform(({ offset, eof }) => ({ offset, eof: eof === "1" })),
    read: (value) => readStdinQuery(asQuery(value)),
    values: query({ offset: numbers, eof: fc.constantFrom("0", "1", "") }),
  },
  wait: {
    schema: waitQuerySchema.transform(({ timeoutMs }) => ({ timeoutMs })),
    read: (value) => ({ timeoutMs: readWaitQuery(asQuery(value)).timeoutMs }),
    values: query({
      for: fc.constantFrom(
        "exit",
        "port:1",
        "port:65535",
        "port:0",
        "log:x\ny",
        "log:",
        "port:",
        "",
      ),
      timeoutMs: numbers,
    }),
  },
};

test.each(Object.entries(cases))(
  "[P24] the agent takes exactly the calls that the schema takes, and reads the same from them: %s",
  (_, { schema, read, values }) => {
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
          expect(bySchema.success, JSON.stringify(value)).toBe(false);
          return;
        }
        taken += 1;
        expect(bySchema.error).toBeUndefined();
        expect(byHand).toEqual(bySchema.data);
      }),
      { numRuns: 1500 },
    );
    // Of calls drawn by chance few fit; that both kinds are met is all that is asked.
    expect(taken).toBeGreaterThan(3);
    expect(refused).toBeGreaterThan(3);
  },
);
