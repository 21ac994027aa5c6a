/** Rows of the verbs on terminals. The bytes of a terminal go over the WebSocket of `connectTerminal`. */
import { limits } from "../limits.ts";
import { response, type Schemas, sandboxPath, startErrors, type VerbRow } from "./row.ts";

const all = `${sandboxPath}/terminals` as const;
const single = `${all}/:terminal` as const;

export const terminalRows = (schemas: Schemas) =>
  ({
    createTerminal: {
      method: "POST",
      path: all,
      summary: "Get or create a terminal",
      example: { body: { id: "main", cols: 120, rows: 40 } },
      right: "terminal",
      gated: true,
      agent: true,
      body: schemas.terminalCallSchema,
      optionalBody: true,
      // A program that has ended frees its id, so a repeated call would run it again. A shell waits for input.
      repeatable: ({ id, argv }) => id !== undefined && argv === undefined,
      responses: {
        200: response(schemas.terminalSchema, "It existed."),
        201: response(schemas.terminalSchema, "Created."),
      },
      errors: [...startErrors, "stale_handle"],
    },
    listTerminals: {
      method: "GET",
      path: all,
      call: "terminals",
      summary: "List terminals",
      description: "Never starts a container.",
      right: "read",
      agent: true,
      whenStopped: "empty list",
      responses: { 200: response(schemas.terminalsSchema, "Empty if no container runs.") },
    },
    getTerminal: {
      method: "GET",
      path: single,
      call: "terminal",
      summary: "Get one terminal",
      right: "read",
      agent: true,
      responses: { 200: response(schemas.terminalSchema, "The terminal now.") },
    },
    resizeTerminal: {
      method: "PATCH",
      path: single,
      summary: "Change the size of a terminal",
      example: { body: { cols: 120, rows: 40 } },
      right: "terminal",
      agent: true,
      body: schemas.terminalResizeSchema,
      repeatable: true,
      responses: { 200: response(schemas.terminalSchema, "The terminal with its new size.") },
    },
    writeTerminal: {
      method: "POST",
      path: `${single}/input`,
      summary: "Type bytes into a terminal",
      description: "For callers that do not stay connected; the WebSocket of a writer types too.",
      right: "terminal",
      agent: true,
      body: "bytes",
      bodyBytesMax: limits.terminalInputBytesMax,
      responses: { 200: response(schemas.terminalSchema, "The program will read these bytes.") },
      errors: ["too_large", "unsupported_type", "body_timeout"],
    },
    endTerminal: {
      method: "DELETE",
      path: single,
      summary: "End a terminal and everything that runs in it",
      right: "terminal",
      agent: true,
      responses: { 200: response(schemas.terminalEndedSchema, "Ended.") },
    },
    terminalScreen: {
      method: "GET",
      path: `${single}/screen`,
      summary: "Get the visible text of a terminal",
      right: "read",
      agent: true,
      responses: { 200: response(schemas.screenSchema, "The screen now.") },
    },
    connectTerminal: {
      method: "GET",
      path: `${single}/connect`,
      summary: "Attach to a terminal with a WebSocket",
      description: "With the subprotocol `berth.terminal.v1` the WebSocket carries frames too.",
      example: { query: { after: 0, mode: "viewer" } },
      right: "terminal",
      query: schemas.connectQuerySchema,
      responses: {},
      errors: ["sandbox_destroyed", "operation_interrupted", "upgrade_required", "too_many"],
    },
  }) as const satisfies Record<string, VerbRow>;
