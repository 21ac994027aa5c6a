/** Rows of the verbs on processes: long work with a log. */
import type { ErrorCode } from "../error-codes.ts";
import { limits } from "../limits.ts";
import {
  response,
  type Schemas,
  sandboxPath,
  slowResponse,
  startErrors,
  type VerbRow,
} from "./row.ts";

const all = `${sandboxPath}/processes` as const;
const single = `${all}/:process` as const;

/** In a session too. */
export const startProcessErrors: ErrorCode[] = [...startErrors, "name_taken"];

export const processRows = (schemas: Schemas) =>
  ({
    startProcess: {
      method: "POST",
      path: all,
      summary: "Start a process that outlives the call",
      description: "Its output is stored in a log that is read by cursor.",
      example: { body: { command: "npm run dev", name: "web" } },
      right: "exec",
      gated: true,
      idempotent: true,
      agent: true,
      body: schemas.processCallSchema,
      responses: { 201: response(schemas.processSchema, "Started.") },
      errors: startProcessErrors,
    },
    listProcesses: {
      method: "GET",
      path: all,
      call: "processes",
      summary: "List processes that run and those that exited lately",
      description: "Never starts a container.",
      example: { query: { state: "running" } },
      right: "read",
      agent: true,
      whenStopped: "empty list",
      query: schemas.processesQuerySchema,
      responses: { 200: response(schemas.processesSchema, "Empty if no container runs.") },
    },
    getProcess: {
      method: "GET",
      path: single,
      call: "process",
      summary: "Get one process",
      right: "read",
      agent: true,
      responses: { 200: response(schemas.processSchema, "The process now.") },
    },
    endProcess: {
      method: "DELETE",
      path: single,
      summary: "End a process and all its descendants: SIGTERM, then SIGKILL",
      right: "exec",
      gated: true,
      agent: true,
      responses: { 200: response(schemas.processSchema, "Ended.") },
    },
    processLogs: {
      method: "GET",
      path: `${single}/logs`,
      summary: "Read the output of a process, or follow it",
      description:
        "Server-sent events, or with `Accept: application/octet-stream` the bytes of one stream.",
      example: { query: { after: 0, follow: "1" } },
      right: "read",
      agent: true,
      query: schemas.logsQuerySchema,
      responses: {
        200: response(
          "stream",
          "Events `output` (their `id` is the cursor), `truncated`, `exit` and `error`; or bytes, with the offset of the first one in the header `berth-offset`.",
        ),
      },
      errors: ["too_many"],
    },
    waitForProcess: {
      method: "GET",
      path: `${single}/wait`,
      summary: "Wait for the exit of a process, for a port or for a text in its output",
      description: "The timeout ends only the wait: the process continues.",
      example: { query: { for: "port:3000", timeoutMs: 30_000 } },
      right: "read",
      agent: true,
      query: schemas.waitQuerySchema,
      responses: {
        200: response(schemas.waitedSchema, `The condition was met or not. ${slowResponse}`),
      },
      errors: ["too_many"],
    },
    writeStdin: {
      method: "POST",
      path: `${single}/stdin`,
      summary: "Write to the standard input of a process",
      description: "With `offset` bytes that were accepted before are skipped.",
      example: { query: { offset: 0, eof: "1" } },
      right: "exec",
      gated: true,
      agent: true,
      query: schemas.stdinQuerySchema,
      body: "bytes",
      bodyBytesMax: limits.processStdinBytesMax,
      repeatable: ({ offset }) => offset !== undefined,
      responseMs: limits.processStdinWaitMs + limits.agentHeadersMs,
      responses: { 200: response(schemas.stdinTakenSchema, "How much was accepted so far.") },
      errors: ["body_timeout", "stdin_gap", "too_large", "unsupported_type", "unavailable"],
    },
    signalProcess: {
      method: "POST",
      path: `${single}/signal`,
      summary: "Send a signal to a process and all its descendants",
      example: { body: { signal: "SIGTERM" } },
      right: "exec",
      gated: true,
      agent: true,
      body: schemas.signalCallSchema,
      argument: "signal",
      responses: { 200: response(schemas.processSchema, "The signal was sent.") },
    },
  }) as const satisfies Record<string, VerbRow>;
