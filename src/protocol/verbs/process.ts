/**
 * Owns the routes of processes: long work with a log.
 * Does not own starting one from a session's state: session-routes.ts.
 */
import type { ErrorCode } from "../errors.ts";
import {
  logsQuerySchema,
  processCallSchema,
  processesQuerySchema,
  processesSchema,
  processSchema,
  signalCallSchema,
  stdinQuerySchema,
  stdinTakenSchema,
  waitedSchema,
  waitQuerySchema,
} from "../process.ts";
import { atTheGate, badBody, ofOneAlive, one, type Route } from "./verb.ts";

const all = `${one}/processes`;
const single = `${all}/:process`;

/** A process is named: it may be unknown, of an earlier life, or the form of its id be wrong. */
const ofOneProcess: ErrorCode[] = [
  ...ofOneAlive,
  "bad_request",
  "stale_handle",
  "operation_interrupted",
];

export const startErrors: ErrorCode[] = [
  ...ofOneAlive,
  ...badBody,
  ...atTheGate,
  "bad_cwd",
  "not_running",
  "start_failed",
  "too_many",
  "operation_interrupted",
];

export const startProcessErrors: ErrorCode[] = [...startErrors, "name_taken"];

export const processRoutes = {
  startProcess: {
    method: "POST",
    path: all,
    summary: "Start long work: it outlives the call, its output is read by cursor",
    right: "exec",
    gated: true,
    keyed: true,
    body: processCallSchema,
    answers: { 201: { schema: processSchema, meaning: "Started." } },
    errors: startProcessErrors,
  },
  listProcesses: {
    method: "GET",
    path: all,
    summary: "What runs, and what has exited lately; never wakes the container",
    right: "read",
    query: processesQuerySchema,
    answers: { 200: { schema: processesSchema, meaning: "Empty where no container runs." } },
    errors: [...ofOneAlive, "bad_request"],
  },
  getProcess: {
    method: "GET",
    path: single,
    summary: "One process",
    right: "read",
    answers: { 200: { schema: processSchema, meaning: "As it is now." } },
    errors: ofOneProcess,
  },
  endProcess: {
    method: "DELETE",
    path: single,
    summary: "End the whole tree: TERM, then KILL",
    right: "exec",
    gated: true,
    answers: { 200: { schema: processSchema, meaning: "Ended." } },
    errors: [...ofOneProcess, ...atTheGate],
  },
  processLogs: {
    method: "GET",
    path: `${single}/logs`,
    summary:
      "Its output: server-sent events, or with `Accept: application/octet-stream` the bytes of one stream",
    right: "read",
    query: logsQuerySchema,
    answers: {
      200: {
        schema: "stream",
        meaning:
          "Events `output` with the cursor as `id`, `truncated`, `exit`, `error`; or raw bytes, whose place stands in `berth-offset`.",
      },
    },
    errors: [...ofOneProcess, "too_many"],
  },
  waitForProcess: {
    method: "GET",
    path: `${single}/wait`,
    summary: "Wait for its exit, a port or a text; the time-out is the waiter's alone",
    right: "read",
    query: waitQuerySchema,
    answers: {
      200: {
        schema: waitedSchema,
        meaning:
          "Met or not. After 2 s the body begins with spaces, one a second; what fails after that is an `error` inside the 200.",
      },
    },
    errors: [...ofOneProcess, "too_many"],
  },
  writeStdin: {
    method: "POST",
    path: `${single}/stdin`,
    summary: "Write to its standard input; with `offset` a repeated write is harmless",
    right: "exec",
    gated: true,
    query: stdinQuerySchema,
    body: "bytes",
    answers: { 200: { schema: stdinTakenSchema, meaning: "Taken so far." } },
    errors: [
      ...ofOneProcess,
      ...atTheGate,
      "body_timeout",
      "stdin_gap",
      "too_large",
      "unsupported_type",
      "unavailable",
    ],
  },
  signalProcess: {
    method: "POST",
    path: `${single}/signal`,
    summary: "Send a signal to the whole tree",
    right: "exec",
    gated: true,
    body: signalCallSchema,
    answers: { 200: { schema: processSchema, meaning: "Sent." } },
    errors: [...ofOneProcess, ...badBody, ...atTheGate],
  },
} as const satisfies Record<string, Route>;
