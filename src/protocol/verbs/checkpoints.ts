/** Rows of the verbs on checkpoints. Forking a sandbox from one is a create with `from`. */
import type { ErrorCode } from "../error-codes.ts";
import { limits } from "../limits.ts";
import { response, type Schemas, sandboxPath, type VerbRow } from "./row.ts";

const all = `${sandboxPath}/checkpoints` as const;
const single = `${all}/:checkpoint` as const;
const checkpointErrors: ErrorCode[] = ["sandbox_destroyed", "checkpoint_expired"];

export const checkpointRows = (schemas: Schemas) =>
  ({
    makeCheckpoint: {
      method: "POST",
      path: all,
      summary: "Save the file tree",
      description: "The container is frozen while its files are copied.",
      example: { body: { name: "before-upgrade" } },
      right: "lifecycle",
      takesDisk: true,
      gated: true,
      body: schemas.checkpointCallSchema,
      optionalBody: true,
      responseMs: limits.snapshotTimeoutMs,
      responses: { 201: response(schemas.checkpointSchema, "Saved completely.") },
      errors: ["not_running", "too_many", "unsupported", "disk_full"],
    },
    listCheckpoints: {
      method: "GET",
      path: all,
      call: "checkpoints",
      summary: "List the checkpoints, newest first",
      right: "read",
      responses: { 200: response(schemas.checkpointsSchema, "All checkpoints.") },
    },
    getCheckpoint: {
      method: "GET",
      path: single,
      call: "checkpoint",
      summary: "Get one checkpoint",
      right: "read",
      responses: { 200: response(schemas.checkpointSchema, "The checkpoint.") },
      errors: checkpointErrors,
    },
    removeCheckpoint: {
      method: "DELETE",
      path: single,
      summary: "Remove a checkpoint",
      right: "lifecycle",
      responses: { 200: response(schemas.checkpointSchema, "The checkpoint that was removed.") },
      errors: [...checkpointErrors, "checkpoint_in_use"],
    },
    restoreCheckpoint: {
      method: "POST",
      path: `${single}/restore`,
      call: "restore",
      summary: "Restart the sandbox with the files of a checkpoint",
      description: "Everything that runs ends, and files that were written later are lost.",
      right: "lifecycle",
      takesDisk: true,
      gated: true,
      responseMs: limits.snapshotTimeoutMs,
      responses: {
        200: response(schemas.sandboxSchema, "Running with these files, or still starting."),
      },
      errors: [...checkpointErrors, "disk_full", "start_failed"],
    },
  }) as const satisfies Record<string, VerbRow>;
