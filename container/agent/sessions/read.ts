/**
 * Owns the check that calls on sessions have the form of their schemas, by hand.
 * Does not own that form (src/protocol/session.ts): a test holds these readings and the schemas together.
 */

import { handlePattern, handleWords } from "../../../src/protocol/fields/handle.ts";
import type {
  AgentSessionCall,
  AgentSessionExecCall,
} from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import {
  commandOf,
  cwdOf,
  encodingOf,
  envOf,
  maxOutputBytesOf,
  stdinOf,
  timeoutOf,
} from "../exec/command-call.ts";
import { keepOf } from "../exec/read-call.ts";
import { callOf, numberOf, refuse, textOf } from "../server/fields.ts";

export function readSessionCall(value: unknown): AgentSessionCall {
  const call = callOf(value, ["id", "cwd", "env", "commandTimeoutMs"]);
  const id = textOf(call.id, "id");
  if (!handlePattern.test(id)) refuse("id", handleWords);
  const read: AgentSessionCall = {
    id,
    commandTimeoutMs: numberOf(
      call.commandTimeoutMs === undefined ? limits.execTimeoutDefaultMs : call.commandTimeoutMs,
      "commandTimeoutMs",
      { min: 1, max: limits.execTimeoutMaxMs },
    ),
  };
  if (call.cwd !== undefined) read.cwd = cwdOf(call.cwd);
  if (call.env !== undefined) read.env = envOf(call.env);
  return read;
}

const execFields = [
  ...["command", "stdin", "maxOutputBytes", "encoding", "timeoutMs"],
  ...["execId", "requestId", "keep"],
];

export function readSessionExecCall(value: unknown): AgentSessionExecCall {
  const call = callOf(value, execFields);
  const encoding = encodingOf(call.encoding);
  const read: AgentSessionExecCall = {
    command: commandOf(call.command),
    execId: textOf(call.execId, "execId"),
    requestId: textOf(call.requestId, "requestId"),
    maxOutputBytes: maxOutputBytesOf(call.maxOutputBytes),
    encoding,
  };
  if (call.stdin !== undefined) read.stdin = stdinOf(call.stdin, encoding);
  if (call.timeoutMs !== undefined) {
    read.timeoutMs = timeoutOf(call.timeoutMs, 0, limits.execTimeoutMaxMs);
  }
  if (call.keep !== undefined) read.keep = keepOf(call.keep);
  return read;
}
