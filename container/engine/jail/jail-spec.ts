/**
 * The description of a jail that the engine writes for a new agent: folders, limits and network, all decided by the
 * engine. The agent trusts it.
 */
import { z } from "zod";
import type { AgentBoot } from "../../../src/protocol/internal/agent.ts";

type Overlay = { lower: string; upper: string; work: string };

/** All paths are absolute. */
export type JailSpec = {
  hostName: string;
  /** own: the agent is root and commands run as `berth`. mapped: both are the one user that could be mapped. */
  user: "own" | "mapped";
  network: "none" | "nat" | "pasta" | "host";
  /** An empty folder on which the new root is mounted; only this mount namespace sees the mounts. */
  mountPoint: string;
  root: Overlay;
  usr: Overlay;
  workspace: string;
  /** Program folders of the host's root that are no links into /usr; mounted read-only. */
  readOnlyFolders: string[];
  cgroups: {
    /** Groups that the agent joins before it changes its root. */
    join: string[];
    /** The folder below which the agent makes one group per command; null where cgroup v2 is not writable. */
    commands: string | null;
  };
  tmpfsBytes: { tmp: number; run: number; shm: number };
  userLimits: UserLimits;
};

/** What the kernel counts for a user over all processes (setrlimit): RLIMIT_NPROC, _SIGPENDING and _MSGQUEUE. */
export type UserLimits = Record<
  "processes" | "pendingSignals" | "messageQueueBytes",
  number | "unlimited" | "inherited"
>;

/** The document that the engine writes to the agent's descriptor 3. */
export type JailDocument = { boot: AgentBoot; jail: JailSpec };

/** The single line that the agent prints on stdout once it accepts requests. */
export const agentReadySchema = z.strictObject({
  port: z.int().min(1).max(65535),
  incarnation: z.string(),
  tree: z.enum(["cgroup", "subreaper"]),
});

export type AgentReady = z.infer<typeof agentReadySchema>;
