/**
 * Owns the routes of sessions: the only way to a shell that remembers.
 */
import type { ErrorCode } from "../errors.ts";
import { execResultSchema } from "../exec.ts";
import { processCallSchema, processSchema } from "../process.ts";
import {
  sessionCallSchema,
  sessionEndedSchema,
  sessionExecCallSchema,
  sessionSchema,
  sessionsSchema,
} from "../session.ts";
import { startErrors, startProcessErrors } from "./process.ts";
import { atTheGate, ofOneAlive, one, type Route } from "./verb.ts";

const all = `${one}/sessions`;
const single = `${all}/:session`;

const ofOneSession: ErrorCode[] = [
  ...ofOneAlive,
  "bad_request",
  "stale_handle",
  "session_terminated",
  "operation_interrupted",
];

export const sessionRoutes = {
  createSession: {
    method: "POST",
    path: all,
    summary: "Get or make a shell that remembers folder, variables, functions, aliases",
    right: "exec",
    gated: true,
    body: sessionCallSchema,
    answers: {
      200: { schema: sessionSchema, meaning: "It was there." },
      201: { schema: sessionSchema, meaning: "Made." },
    },
    errors: [...startErrors, "stale_handle", "unsupported"],
  },
  listSessions: {
    method: "GET",
    path: all,
    summary: "The sessions; never wakes the container",
    right: "read",
    answers: { 200: { schema: sessionsSchema, meaning: "Empty where no container runs." } },
    errors: ofOneAlive,
  },
  getSession: {
    method: "GET",
    path: single,
    summary: "One session",
    right: "read",
    answers: { 200: { schema: sessionSchema, meaning: "As it is now." } },
    errors: ofOneSession,
  },
  endSession: {
    method: "DELETE",
    path: single,
    summary: "End the shell and what was started in it",
    right: "exec",
    gated: true,
    answers: { 200: { schema: sessionEndedSchema, meaning: "Ended." } },
    errors: [...ofOneSession, ...atTheGate],
  },
  execInSession: {
    method: "POST",
    path: `${single}/exec`,
    summary: "Run a command in the session's own shell, one at a time in the order of the calls",
    right: "exec",
    gated: true,
    keyed: true,
    body: sessionExecCallSchema,
    answers: {
      200: {
        schema: execResultSchema,
        meaning:
          "It ran; a non-zero exit is a 200. After 2 s the body begins with spaces, one a second; what fails after that is an `error` inside the 200.",
      },
    },
    errors: [...startErrors, "stale_handle", "session_terminated"],
  },
  startProcessInSession: {
    method: "POST",
    path: `${single}/processes`,
    summary: "Start a process from a copy of the session's state; nothing is written back",
    right: "exec",
    gated: true,
    keyed: true,
    body: processCallSchema,
    answers: { 201: { schema: processSchema, meaning: "Started." } },
    errors: [...startProcessErrors, "stale_handle", "session_terminated"],
  },
} as const satisfies Record<string, Route>;
