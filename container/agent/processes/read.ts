/**
 * Owns the check that calls about processes have the form of src/protocol/process.ts, by hand.
 * Does not own that form: a test holds these readings and the schemas together.
 */

import { handlePattern, handleWords } from "../../../src/protocol/fields/handle.ts";
import type { AgentProcessCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { LogsQuery, ProcessesQuery, SignalName } from "../../../src/protocol/process.ts";
import { programFields, programOf, timeoutOf } from "../exec/command-call.ts";
import { callOf, numberOf, refuse, textOf, wholeOf } from "../server/fields.ts";

const processFields = [
  ...programFields,
  "timeoutMs",
  "logBytesMax",
  "onFull",
  "endsWithLease",
  "id",
  "name",
  "ifRunning",
];

export function readProcessCall(value: unknown): AgentProcessCall {
  const call = callOf(value, processFields);
  const { timeoutMs, logBytesMax = limits.processLogDefaultBytes, onFull = "drop" } = call;
  if (onFull !== "drop" && onFull !== "block") refuse("onFull", "must be drop or block");
  const range = { min: limits.processLogMinBytes, max: limits.processLogMaxBytes };
  const read: AgentProcessCall = {
    ...programOf(call),
    id: handleOf(call.id, "id"),
    logBytesMax: numberOf(logBytesMax, "logBytesMax", range),
    onFull,
  };
  const { endsWithLease, name, ifRunning } = call;
  if (endsWithLease !== undefined) {
    if (typeof endsWithLease !== "boolean") refuse("endsWithLease", "must be true or false");
    read.endsWithLease = endsWithLease;
  }
  if (timeoutMs !== undefined) {
    read.timeoutMs = timeoutOf(timeoutMs, 0, limits.processTimeoutMaxMs);
  }
  if (name !== undefined) read.name = handleOf(name, "name");
  if (ifRunning !== undefined) {
    if (ifRunning !== "refuse" && ifRunning !== "replace") {
      refuse("ifRunning", "must be refuse or replace");
    }
    if (name === undefined) refuse("ifRunning", "needs a name");
    read.ifRunning = ifRunning;
  }
  return read;
}

const signals: Record<SignalName, true> = {
  ...{ SIGHUP: true, SIGINT: true, SIGQUIT: true, SIGKILL: true, SIGUSR1: true, SIGUSR2: true },
  ...{ SIGTERM: true, SIGCONT: true, SIGSTOP: true, SIGWINCH: true },
};

export function readSignalCall(value: unknown): SignalName {
  const { signal = "SIGTERM" } = callOf(value, ["signal"]);
  const name = textOf(signal, "signal");
  if (!Object.hasOwn(signals, name)) {
    refuse("signal", `must be one of ${Object.keys(signals).join(", ")}`);
  }
  return name as SignalName;
}

export function readProcessesQuery(query: URLSearchParams): ProcessesQuery {
  const { state, session, name } = parametersOf(query, ["state", "session", "name"]);
  const read: ProcessesQuery = {};
  if (state !== undefined) {
    if (state !== "running" && state !== "exited") refuse("state", "must be running or exited");
    read.state = state;
  }
  if (session !== undefined) read.session = handleOf(session, "session");
  if (name !== undefined) read.name = handleOf(name, "name");
  return read;
}

export function readLogsQuery(query: URLSearchParams): LogsQuery {
  const known = ["after", "offset", "follow", "stream"];
  const { after, offset, follow, stream } = parametersOf(query, known);
  const read: LogsQuery = {
    after: after === undefined ? 0 : cursorOf(after, "after"),
    follow: switchOf(follow, "follow"),
  };
  if (offset !== undefined) read.offset = cursorOf(offset, "offset");
  if (stream !== undefined) {
    if (stream !== "stdout" && stream !== "stderr") refuse("stream", "must be stdout or stderr");
    read.stream = stream;
  }
  return read;
}

export type Condition =
  | { for: "exit" }
  | { for: "port"; port: number }
  | { for: "log"; text: string };

const portMax = 65_535;
const logCharsMax = 1024;

export function readWaitQuery(query: URLSearchParams): { until: Condition; timeoutMs: number } {
  const { for: what = "exit", timeoutMs } = parametersOf(query, ["for", "timeoutMs"]);
  const range = { min: 0, max: limits.processWaitMaxMs };
  return {
    until: conditionOf(what),
    timeoutMs:
      timeoutMs === undefined
        ? limits.processWaitDefaultMs
        : wholeOf(timeoutMs, "timeoutMs", range),
  };
}

export function readStdinQuery(query: URLSearchParams): {
  offset: number | undefined;
  eof: boolean;
} {
  const { offset, eof } = parametersOf(query, ["offset", "eof"]);
  return {
    offset: offset === undefined ? undefined : cursorOf(offset, "offset"),
    eof: switchOf(eof, "eof") === "1",
  };
}

/** How many bytes came before; of a header too. */
export function cursorOf(text: string, field: string): number {
  return wholeOf(text, field, { min: 0, max: Number.MAX_SAFE_INTEGER });
}

function conditionOf(text: string): Condition {
  if (text === "exit") return { for: "exit" };
  const [, port] = /^port:([1-9]\d{0,4})$/.exec(text) ?? [];
  if (port !== undefined && Number(port) <= portMax) return { for: "port", port: Number(port) };
  const sought = text.slice("log:".length);
  if (!text.startsWith("log:") || sought === "" || sought.length > logCharsMax) {
    refuse("for", "must be exit, port:N or log:<text>");
  }
  return { for: "log", text: sought };
}

function handleOf(value: unknown, field: string): string {
  const handle = textOf(value, field);
  if (!handlePattern.test(handle)) refuse(field, handleWords);
  return handle;
}

function switchOf(text: string | undefined, field: string): "0" | "1" {
  if (text !== undefined && text !== "0" && text !== "1") refuse(field, "must be 0 or 1");
  return text ?? "0";
}

function parametersOf(query: URLSearchParams, known: string[]): Record<string, string | undefined> {
  for (const name of query.keys()) {
    if (query.getAll(name).length > 1) refuse(name, "is given more than once");
  }
  return callOf(Object.fromEntries(query), known) as Record<string, string>;
}
