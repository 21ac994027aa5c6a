/**
 * Owns the check that an exec call has the form of agentExecCallSchema, by hand.
 * Does not own that form: the door has held the call against the schema already; a test holds this reading and
 * the schema together.
 */
import type { AgentExecCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { callOf, refuse, textOf } from "../server/fields.ts";
import {
  encodingOf,
  maxOutputBytesOf,
  programFields,
  programOf,
  stdinOf,
  timeoutOf,
} from "./command-call.ts";

const fields = [
  ...programFields,
  ...["stdin", "timeoutMs", "maxOutputBytes", "encoding", "execId", "requestId", "keep"],
];

export function readExecCall(value: unknown): AgentExecCall {
  const call = callOf(value, fields);
  const encoding = encodingOf(call.encoding);
  const read: AgentExecCall = {
    ...programOf(call),
    execId: textOf(call.execId, "execId"),
    requestId: textOf(call.requestId, "requestId"),
    timeoutMs: timeoutOf(call.timeoutMs, limits.execTimeoutDefaultMs, limits.execTimeoutMaxMs),
    maxOutputBytes: maxOutputBytesOf(call.maxOutputBytes),
    encoding,
  };
  if (call.stdin !== undefined) read.stdin = stdinOf(call.stdin, encoding);
  if (call.keep !== undefined) read.keep = keepOf(call.keep);
  return read;
}

/** Of session commands too. */
export function keepOf(value: unknown): boolean {
  if (typeof value !== "boolean") refuse("keep", "must be true or false");
  return value;
}
