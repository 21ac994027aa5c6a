/**
 * Owns the form of what the engine tells a new room: folders, limits, network, all decided outside.
 * Does not own what the agent is told beside it (src/protocol/internal/agent.ts), nor how the room is built (enter.ts).
 */
import { z } from "zod";
import { agentBootSchema } from "../../../src/protocol/internal/agent.ts";

const absolutePath = z.string().regex(/^\/[^\0]*$/, "must be an absolute path");

const overlaySchema = z.strictObject({
  lower: absolutePath,
  upper: absolutePath,
  work: absolutePath,
});

export const roomPlanSchema = z.strictObject({
  hostName: z.string().regex(/^[a-z0-9-]{1,63}$/),
  /** own: the agent is root and commands are `berth`. mapped: both are the one user that could be mapped. */
  user: z.enum(["own", "mapped"]),
  network: z.enum(["none", "nat", "pasta", "host"]),
  /** An empty folder at which the new root is put together; seen by nobody but this mount namespace. */
  mountAt: absolutePath,
  root: overlaySchema,
  usr: overlaySchema,
  workspace: absolutePath,
  /** Folders of the host's root that are not links into /usr there, shown read-only. */
  readOnlyFolders: z.array(absolutePath),
  cgroups: z.strictObject({
    /** Groups that the agent joins before it changes its root. */
    join: z.array(absolutePath),
    /** The folder below which it may make one group for each command, where cgroup v2 is writable. */
    commands: absolutePath.nullable(),
  }),
  tmpfsBytes: z.strictObject({ tmp: z.int(), run: z.int(), shm: z.int() }),
  /** RLIMIT_NPROC of a mapped user, where no cgroup counts processes. */
  processesMax: z.int().nullable(),
});

/** What the engine writes to the agent's descriptor 3. */
export const roomDocumentSchema = z.strictObject({ boot: agentBootSchema, room: roomPlanSchema });

/** The one line that the agent prints on stdout once it serves. */
export const agentReadySchema = z.strictObject({
  port: z.int().min(1).max(65535),
  incarnation: z.string(),
  tree: z.enum(["cgroup", "subreaper"]),
});

export type RoomPlan = z.infer<typeof roomPlanSchema>;
export type RoomDocument = z.infer<typeof roomDocumentSchema>;
export type AgentReady = z.infer<typeof agentReadySchema>;
