/**
 * Rows of the verbs on a sandbox as a whole, and of exec.
 */
import { limits } from "../limits.ts";
import {
  leaseErrors,
  response,
  type Schemas,
  sandboxPath,
  slowResponse,
  startErrors,
  type VerbRow,
} from "./row.ts";

export const sandboxRows = (schemas: Schemas) =>
  ({
    health: {
      method: "GET",
      path: "/health",
      summary: "Report whether Berth works and how it isolates sandboxes",
      description: "Needs no key.",
      responses: { 200: response(schemas.healthSchema, "The state of this installation.") },
    },
    createSandbox: {
      method: "POST",
      path: "/v1/sandboxes",
      call: "create",
      summary: "Create a sandbox, or find the current one of a scope",
      description:
        "With `scope` the call returns the scope's current sandbox if there is one; `onExisting` says what happens to it otherwise. With an `Idempotency-Key` a repeated call returns the sandbox of the first one.",
      example: {
        body: { scope: { repo: "github.com/owner/name", branch: "main" }, waitMs: 10_000 },
      },
      right: "key",
      needs: ["exec", "lifecycle"],
      idempotent: true,
      query: schemas.createQuerySchema,
      body: schemas.createCallSchema,
      responses: {
        201: response(schemas.sandboxSchema, "Created and stored; it may still be starting."),
        200: response(schemas.sandboxSchema, "Found by its scope or by the idempotency key."),
      },
      errors: [
        ...leaseErrors,
        "not_found",
        "unavailable",
        "sandbox_destroyed",
        "unsupported",
        "scope_taken",
        "idempotency_mismatch",
        "checkpoint_expired",
      ],
    },
    getSandbox: {
      method: "GET",
      path: sandboxPath,
      call: "get",
      summary: "Get the state of a sandbox",
      description: "Never starts a container. A destroyed sandbox can be read for 7 days.",
      right: "read",
      responses: { 200: response(schemas.sandboxSchema, "The sandbox now.") },
    },
    destroySandbox: {
      method: "DELETE",
      path: sandboxPath,
      call: "destroy",
      summary: "Destroy a sandbox and its files",
      example: { query: { force: "1" } },
      right: "lifecycle",
      gated: true,
      query: schemas.destroyQuerySchema,
      repeatable: true,
      responses: {
        200: response(
          schemas.sandboxSchema,
          "Destroyed, or `destroying`: then it will be destroyed in any case.",
        ),
      },
    },
    startSandbox: {
      method: "POST",
      path: `${sandboxPath}/start`,
      call: "start",
      summary: "Start the container of a paused or failed sandbox",
      right: "lifecycle",
      repeatable: true,
      responses: { 200: response(schemas.sandboxSchema, "Running, or still starting.") },
    },
    pauseSandbox: {
      method: "POST",
      path: `${sandboxPath}/pause`,
      call: "pause",
      summary: "Stop the container; files stay, processes end",
      example: { query: { force: "1" } },
      right: "lifecycle",
      gated: true,
      query: schemas.pauseQuerySchema,
      responseMs: limits.snapshotTimeoutMs,
      responses: { 200: response(schemas.sandboxSchema, "Paused, or still pausing.") },
      errors: ["not_running", "unsupported"],
    },
    touchSandbox: {
      method: "POST",
      path: `${sandboxPath}/touch`,
      call: "touch",
      summary: "Reset the idle timer",
      right: "exec",
      repeatable: true,
      responses: { 200: response(schemas.sandboxSchema, "The idle time starts again at zero.") },
    },
    exec: {
      method: "POST",
      path: `${sandboxPath}/exec`,
      summary: "Run one command to its end and return its output",
      description: "Nothing persists between commands but the files they write.",
      example: { body: { command: "make test", timeoutMs: 60_000 } },
      right: "exec",
      gated: true,
      idempotent: true,
      agent: true,
      body: schemas.execCallSchema,
      responses: {
        200: response(
          schemas.execResultSchema,
          `The command ran; a non-zero exit code is a 200 too. ${slowResponse}`,
        ),
      },
      errors: startErrors,
    },
  }) as const satisfies Record<string, VerbRow>;
