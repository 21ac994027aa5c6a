/** Rows of the verbs on sessions: shells that keep their state between commands. */
import { startProcessErrors } from "./processes.ts";
import {
  response,
  type Schemas,
  sandboxPath,
  slowResponse,
  startErrors,
  type VerbRow,
} from "./row.ts";

const all = `${sandboxPath}/sessions` as const;
const single = `${all}/:session` as const;

export const sessionRows = (schemas: Schemas) =>
  ({
    createSession: {
      method: "POST",
      path: all,
      summary: "Get or create a session",
      description:
        "A session is a shell that remembers folder, variables, functions and aliases between commands.",
      example: { body: { id: "main", cwd: "app" } },
      right: "exec",
      gated: true,
      agent: true,
      body: schemas.sessionCallSchema,
      optionalBody: true,
      // With an id it is found or created: the same one again.
      repeatable: ({ id }) => id !== undefined,
      responses: {
        200: response(schemas.sessionSchema, "It existed."),
        201: response(schemas.sessionSchema, "Created."),
      },
      errors: [...startErrors, "stale_handle", "unsupported"],
    },
    listSessions: {
      method: "GET",
      path: all,
      call: "sessions",
      summary: "List sessions",
      description: "Never starts a container.",
      right: "read",
      agent: true,
      whenStopped: "empty list",
      responses: { 200: response(schemas.sessionsSchema, "Empty if no container runs.") },
    },
    getSession: {
      method: "GET",
      path: single,
      call: "session",
      summary: "Get one session",
      right: "read",
      agent: true,
      responses: { 200: response(schemas.sessionSchema, "The session now.") },
      errors: ["session_terminated"],
    },
    endSession: {
      method: "DELETE",
      path: single,
      summary: "End a session and everything that was started in it",
      right: "exec",
      gated: true,
      agent: true,
      responses: { 200: response(schemas.sessionEndedSchema, "Ended.") },
      errors: ["session_terminated"],
    },
    execInSession: {
      method: "POST",
      path: `${single}/exec`,
      summary: "Run a command in the shell of a session",
      description: "Commands of one session run one at a time, in the order of the calls.",
      example: { body: { command: "cd app && . ./env.sh" } },
      right: "exec",
      gated: true,
      idempotent: true,
      agent: true,
      body: schemas.sessionExecCallSchema,
      responses: {
        200: response(
          schemas.execResultSchema,
          `The command ran; a non-zero exit code is a 200 too. ${slowResponse}`,
        ),
      },
      errors: [...startErrors, "stale_handle", "session_terminated"],
    },
    startProcessInSession: {
      method: "POST",
      path: `${single}/processes`,
      summary: "Start a process from a copy of the state of a session",
      description: "What the process changes does not return to the session.",
      example: { body: { command: "npm run dev" } },
      right: "exec",
      gated: true,
      idempotent: true,
      agent: true,
      body: schemas.processCallSchema,
      responses: { 201: response(schemas.processSchema, "Started.") },
      errors: [...startProcessErrors, "stale_handle", "session_terminated"],
    },
  }) as const satisfies Record<string, VerbRow>;
