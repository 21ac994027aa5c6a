/** The messages of the channel: readers return what writers wrote, and refuse everything else. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type ChannelCall,
  type ChannelResult,
  deferredStatus,
  readCall,
  readResult,
  writeCall,
  writeResult,
} from "../../../src/protocol/internal/agent-channel.ts";

const text = fc.string({ unit: "binary" });
const printable = fc.string({ unit: "binary-ascii" }).filter((id) => /^[\x20-\x7e]*$/.test(id));
const call: fc.Arbitrary<ChannelCall> = fc.record({
  id: text,
  path: text,
  fence: fc.maxSafeNat(),
  requestId: printable,
  body: text,
});
const status = fc.oneof(fc.constantFrom(200, deferredStatus), fc.integer({ min: 400, max: 599 }));
const answer: fc.Arbitrary<ChannelResult> = fc.record({ id: text, status, json: text });

test("[X51] a call and a response are read as they were written, whatever they contain", () => {
  const isCall = fc.property(call, (written) => {
    expect(readCall(writeCall(written))).toEqual(written);
  });
  const isAnswer = fc.property(answer, (written) => {
    expect(readResult(writeResult(written))).toEqual(written);
  });
  fc.assert(isCall);
  fc.assert(isAnswer);
});

test("[X51] no message throws, and a call or response that is read is complete", () => {
  const head = fc.oneof(fc.json(), fc.constant("[".repeat(100_000)), text);
  const message = fc.oneof(
    fc.anything(),
    text,
    fc.tuple(head, text).map(([first, rest]) => `${first}\n${rest}`),
    fc
      .tuple(fc.array(fc.oneof(text, fc.integer(), fc.double(), fc.constant(null))), text)
      .map(([first, rest]) => `${JSON.stringify(first)}\n${rest}`),
  );
  let read = 0;
  const check = (received: unknown) => {
    const called = readCall(received);
    const answered = readResult(received);
    if (called !== undefined) {
      expect(Number.isSafeInteger(called.fence) && called.fence >= 0).toBe(true);
      expect(called.requestId).toMatch(/^[\x20-\x7e]*$/);
      read++;
    }
    if (answered !== undefined) {
      expect(answered.status === deferredStatus || answered.status >= 200).toBe(true);
      read++;
    }
  };
  fc.assert(fc.property(message, check), { numRuns: 2_000 });
  check(`["e","/v1/exec",0,"r"]\n`);
  check(`["e",200]\n{}`);
  expect(read).toBeGreaterThanOrEqual(2);
});

test.each([
  ["no line break", `["e","/v1/exec",0,"r"]`],
  ["bytes", Buffer.from(`["e","/v1/exec",0,"r"]\n{}`)],
  ["no list", `{"id":"e"}\n{}`],
  ["a fence that is not a whole number", `["e","/v1/exec",0.5,"r"]\n{}`],
  ["a negative fence", `["e","/v1/exec",-1,"r"]\n{}`],
  ["a fence beyond the safe integers", `["e","/v1/exec",9007199254740992,"r"]\n{}`],
  ["no request id", `["e","/v1/exec",0]\n{}`],
  ["a request id that no header can carry", `["e","/v1/exec",0,"a\\nb"]\n{}`],
])("[X51] a message with %s is not a call", (_what, message) => {
  expect(readCall(message)).toBeUndefined();
});

test.each([100, 101, 103, 201, 204, 301, 399, 600, 200.5, "200", null])(
  "[X51] a message with the status %s is not a response",
  (received) => {
    expect(readResult(`${JSON.stringify(["e", received])}\n{}`)).toBeUndefined();
  },
);
