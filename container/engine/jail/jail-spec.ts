/**
 * The description of a jail that the engine writes for a new agent: folders, limits and network, all decided by the
 * engine.
 */
import { z } from "zod";
import { agentBootSchema } from "../../../src/protocol/internal/agent.ts";

const absolutePath = z.string().regex(/^\/[^\0]*$/, "must be an absolute path");

const overlaySchema = z.strictObject({
  lower: absolutePath,
  upper: absolutePath,
  work: absolutePath,
});

export const jailSpecSchema = z.strictObject({
  hostName: z.string().regex(/^[a-z0-9-]{1,63}$/),
  /** own: the agent is root and commands run as `berth`. mapped: both are the one user that could be mapped. */
  user: z.enum(["own", "mapped"]),
  network: z.enum(["none", "nat", "pasta", "host"]),
  /** An empty folder on which the new root is mounted; only this mount namespace sees the mounts. */
  mountPoint: absolutePath,
  root: overlaySchema,
  usr: overlaySchema,
  workspace: absolutePath,
  /** Program folders of the host's root that are no links into /usr; mounted read-only. */
  readOnlyFolders: z.array(absolutePath),
  cgroups: z.strictObject({
    /** Groups that the agent joins before it changes its root. */
    join: z.array(absolutePath),
    /** The folder below which the agent makes one group per command; null where cgroup v2 is not writable. */
    commands: absolutePath.nullable(),
  }),
  tmpfsBytes: z.strictObject({ tmp: z.int(), run: z.int(), shm: z.int() }),
  /** RLIMIT_NPROC of a mapped user where no cgroup counts processes. */
  processesMax: z.int().nullable(),
});

/** The document that the engine writes to the agent's descriptor 3. */
export const jailDocumentSchema = z.strictObject({ boot: agentBootSchema, jail: jailSpecSchema });

/** The single line that the agent prints on stdout once it accepts requests. */
export const agentReadySchema = z.strictObject({
  port: z.int().min(1).max(65535),
  incarnation: z.string(),
  tree: z.enum(["cgroup", "subreaper"]),
});

export type JailSpec = z.infer<typeof jailSpecSchema>;
export type JailDocument = z.infer<typeof jailDocumentSchema>;
export type AgentReady = z.infer<typeof agentReadySchema>;
