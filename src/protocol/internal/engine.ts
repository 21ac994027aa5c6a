/**
 * Calls between a Sandbox object and the engine of one machine. Files and commands go to the agent directly, at the
 * address that `start` returns. All paths are below the engine's base URL and need `Authorization: Bearer <engine
 * secret>`. A container has the id of its sandbox. Calls are idempotent: stopping a stopped container succeeds.
 */
import { z } from "zod";
import { envSchema } from "../fields/env.ts";
import { sandboxIdSchema } from "../fields/id.ts";
import { digestPattern } from "../fields/image-reference.ts";
import { isolationSchema } from "../health.ts";
import { limits } from "../limits.ts";

export const enginePaths = {
  /** GET → EngineHealth. */
  health: "/v1/health",
  /**
   * POST EngineStart → EngineStarted. A repeated start id gets the same response. A new start id first ends the
   * incarnation before it. The start id of an incarnation that has ended: 409 start_failed.
   */
  start: (id: string) => `/v1/containers/${id}/start`,
  /** POST EngineDestroy → 204. */
  destroy: (id: string) => `/v1/containers/${id}/destroy`,
  /** POST EngineSignal → 204. Signals every process in the container except the agent. */
  signal: (id: string) => `/v1/containers/${id}/signal`,
  /** GET ?startId=&waitMs= → EngineExit when that incarnation has ended, or 204 after waitMs. */
  monitor: (id: string) => `/v1/containers/${id}/monitor`,
  /** POST EngineSnapshot → EngineSnapshotMade. */
  snapshot: (id: string) => `/v1/containers/${id}/snapshot`,
  /** DELETE → 204, after a snapshot in progress is complete. */
  snapshotOf: (snapshotId: string) => `/v1/snapshots/${snapshotId}`,
  /** POST EngineChanges → Changes of the workspace since an older snapshot. */
  changes: (snapshotId: string) => `/v1/snapshots/${snapshotId}/changes`,
  /** GET → Image[]. */
  images: "/v1/images",
  /** GET, DELETE ?reference= → Image. */
  image: "/v1/image",
  /** POST PullCall → Image, after its end or `waitMs`. */
  pull: "/v1/images/pull",
  /** PUT ?name=, a tar archive → Image. */
  import: "/v1/images/import",
} as const;

export const engineStartSchema = z.strictObject({
  startId: z.string().regex(/^[a-z0-9]{16}$/),
  secret: z.string().min(32),
  env: envSchema,
  network: z.strictObject({ internet: z.boolean() }),
  /** Whether commands may become root inside, where the machine can offer that; left out: true. */
  sudo: z.boolean().optional(),
  /** Limits of this jail instead of the engine's defaults; one that this machine cannot enforce is `unsupported`. */
  bounds: z
    .strictObject({
      memoryBytes: z.int().min(limits.jailMemoryBytesMin).optional(),
      processes: z.int().min(limits.jailProcessesMin).max(limits.jailProcessesMax).optional(),
    })
    .optional(),
  /** The digest of the manifest of an image; left out: the machine's own programs. */
  image: z.string().regex(digestPattern).optional(),
  /** Start from this saved tree instead of the stored files. */
  snapshotId: sandboxIdSchema.optional(),
  /** Start from this saved tree if no files are stored. */
  baseId: sandboxIdSchema.optional(),
});

export const engineStartedSchema = z.strictObject({
  startId: z.string(),
  /** The address of the agent: http://127.0.0.1:<port>. */
  agentUrl: z.url(),
  incarnation: z.string(),
  /** Where the files of this incarnation come from. */
  files: z.enum(["new", "kept", "snapshot"]),
  isolation: isolationSchema,
  /** Settings that have no effect on this machine. */
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
  /** The older snapshot; left out: an empty workspace. */
  fromId: sandboxIdSchema.optional(),
  listMax: z.int().min(0).max(limits.changedPathsMax),
});

export const engineDiskSchema = z.strictObject({
  freeBytes: z.int(),
  /** Below this nothing starts and nothing is saved. */
  floorBytes: z.int(),
  isFull: z.boolean(),
});

export const engineHealthSchema = z.strictObject({
  containers: z.int(),
  containersMax: z.int(),
  isolation: isolationSchema,
  /** One sentence for each isolation feature that this machine lacks, with the remedy. */
  missing: z.array(z.string()),
  disk: engineDiskSchema,
  /** The server's own, as far as the engine knows them. */
  processes: z.array(z.strictObject({ name: z.string(), residentBytes: z.int() })),
});

export type EngineStart = z.infer<typeof engineStartSchema>;
export type EngineStarted = z.infer<typeof engineStartedSchema>;
export type EngineExit = z.infer<typeof engineExitSchema>;
export type EngineDisk = z.infer<typeof engineDiskSchema>;
export type EngineHealth = z.infer<typeof engineHealthSchema>;
