/**
 * Owns the routes of checkpoints. Making one from another sandbox's is a create: `from`.
 */
import { checkpointCallSchema, checkpointSchema, checkpointsSchema } from "../checkpoint.ts";
import type { ErrorCode } from "../errors.ts";
import { sandboxSchema } from "../sandbox.ts";
import { atTheGate, badBody, ofOneAlive, ofOneSandbox, one, type Route } from "./verb.ts";

const all = `${one}/checkpoints`;
const single = `${all}/:checkpoint`;
const ofOneCheckpoint: ErrorCode[] = [...ofOneAlive, "bad_request", "checkpoint_expired"];

export const checkpointRoutes = {
  makeCheckpoint: {
    method: "POST",
    path: all,
    summary: "Save the file tree as it is; everything stands still while that is done",
    right: "lifecycle",
    gated: true,
    body: checkpointCallSchema,
    answers: { 201: { schema: checkpointSchema, meaning: "Saved, whole." } },
    errors: [
      ...ofOneAlive,
      ...badBody,
      ...atTheGate,
      "not_running",
      "too_many",
      "unsupported",
      "disk_full",
    ],
  },
  listCheckpoints: {
    method: "GET",
    path: all,
    summary: "The saved file trees, newest first",
    right: "read",
    answers: { 200: { schema: checkpointsSchema, meaning: "All of them." } },
    errors: ofOneSandbox,
  },
  getCheckpoint: {
    method: "GET",
    path: single,
    summary: "One saved file tree",
    right: "read",
    answers: { 200: { schema: checkpointSchema, meaning: "As it is kept." } },
    errors: ofOneCheckpoint,
  },
  removeCheckpoint: {
    method: "DELETE",
    path: single,
    summary: "Give a saved file tree up",
    right: "lifecycle",
    answers: { 200: { schema: checkpointSchema, meaning: "It was this one." } },
    errors: [...ofOneCheckpoint, "checkpoint_in_use"],
  },
  restoreCheckpoint: {
    method: "POST",
    path: `${single}/restore`,
    summary: "Begin a new life from a saved file tree; what runs ends, later files are gone",
    right: "lifecycle",
    gated: true,
    answers: { 200: { schema: sandboxSchema, meaning: "Running with it, or on its way." } },
    errors: [...ofOneCheckpoint, ...atTheGate, "disk_full", "start_failed"],
  },
} as const satisfies Record<string, Route>;
