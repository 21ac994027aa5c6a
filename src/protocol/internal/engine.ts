/**
 * Owns the calls between a Sandbox object and the embedded engine of one machine.
 * Does not own the data path: the object speaks to the agent directly, at the address that `start` answers.
 *
 * All paths are below the engine's base URL and need `Authorization: Bearer <engine secret>`.
 * A container is named by its sandbox's id. Verbs are idempotent: stopping the stopped is success.
 */
import { z } from "zod";
import { envSchema } from "../fields/env.ts";
import { sandboxIdSchema } from "../fields/id.ts";
import { isolationSchema } from "../fields/isolation.ts";
import { limits } from "../limits.ts";

export const enginePaths = {
  /** GET → EngineHealth. */
  health: "/v1/health",
  /**
   * POST EngineStart → EngineStarted. Same start id again: the same answer. A new one is the object's word that
   * it has given the life before up: that ends first. One that has ended: 409 start_failed.
   */
  start: (id: string) => `/v1/containers/${id}/start`,
  /** POST EngineDestroy → 204. */
  destroy: (id: string) => `/v1/containers/${id}/destroy`,
  /** POST EngineSignal → 204. To every process in the container but the agent. */
  signal: (id: string) => `/v1/containers/${id}/signal`,
  /** GET ?startId=&waitMs= → EngineExit once that life ended (at once if it has), 204 when waitMs passed. */
  monitor: (id: string) => `/v1/containers/${id}/monitor`,
  /** POST EngineSnapshot → EngineSnapshotMade. */
  snapshot: (id: string) => `/v1/containers/${id}/snapshot`,
  /** DELETE → 204, once one that is just being made is whole. */
  snapshotOf: (snapshotId: string) => `/v1/snapshots/${snapshotId}`,
  /** POST EngineChanges → Changes, of the workspace of this snapshot against an older one's. */
  changes: (snapshotId: string) => `/v1/snapshots/${snapshotId}/changes`,
} as const;

export const engineStartSchema = z.strictObject({
  startId: z.string().regex(/^[a-z0-9]{16}$/),
  secret: z.string().min(32),
  env: envSchema,
  network: z.strictObject({ internet: z.boolean() }),
  /** Limits of this jail instead of the engine's defaults; one that this machine cannot enforce is `unsupported`. */
  bounds: z
    .strictObject({
      memoryBytes: z.int().min(limits.jailMemoryBytesMin).optional(),
      processes: z.int().min(limits.jailProcessesMin).max(limits.jailProcessesMax).optional(),
    })
    .optional(),
  /** Begin from this saved tree instead of the one that the engine has kept. */
  snapshotId: sandboxIdSchema.optional(),
  /** Begin from this saved tree where the engine has kept none. */
  baseId: sandboxIdSchema.optional(),
});

export const engineStartedSchema = z.strictObject({
  startId: z.string(),
  /** Where the agent answers: http://127.0.0.1:<port>. */
  agentUrl: z.url(),
  incarnation: z.string(),
  /** Where this life's files come from. */
  files: z.enum(["new", "kept", "snapshot"]),
  isolation: isolationSchema,
  /** What was asked for and has no meaning here, in words. */
  notes: z.array(z.string()),
});

export const engineDestroySchema = z.strictObject({ files: z.enum(["keep", "remove"]) });

export const engineSignalSchema = z.strictObject({ signal: z.int().min(1).max(64) });

export const engineExitSchema = z.strictObject({
  startId: z.string(),
  exitCode: z.int().nullable(),
  signal: z.string().nullable(),
  reason: z.enum(["exited", "destroyed", "out_of_memory", "engine_restarted", "unknown"]),
});

export const engineSnapshotSchema = z.strictObject({ snapshotId: sandboxIdSchema });

export const engineSnapshotMadeSchema = z.strictObject({
  snapshotId: z.string(),
  bytes: z.int(),
});

export const engineChangesSchema = z.strictObject({
  /** The older one; an empty workspace where there is none. */
  fromId: sandboxIdSchema.optional(),
  listMax: z.int().min(0).max(limits.changedPathsMax),
});

export const engineHealthSchema = z.strictObject({
  containers: z.int(),
  containersMax: z.int(),
  isolation: isolationSchema,
  /** One sentence for each thing that this machine cannot give, with the remedy. */
  missing: z.array(z.string()),
});

export type EngineStart = z.infer<typeof engineStartSchema>;
export type EngineStarted = z.infer<typeof engineStartedSchema>;
export type EngineExit = z.infer<typeof engineExitSchema>;
export type EngineHealth = z.infer<typeof engineHealthSchema>;
