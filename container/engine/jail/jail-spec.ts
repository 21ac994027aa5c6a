/**
 * The description of a jail that the engine writes for a new agent: folders, limits and network, all decided by the
 * engine. The agent trusts it.
 */
import { z } from "zod";
import type { AgentBoot } from "../../../src/protocol/internal/agent.ts";
import type { IdRange } from "./id-range.ts";

/** The first of `lower` hides those after it. */
type Overlay = { lower: string[]; upper: string; work: string };

/** All paths are absolute. */
export type JailSpec = {
  hostName: string;
  user: JailUser;
  network: "none" | "nat" | "pasta" | "host";
  /** An empty folder on which the new root is mounted; only this mount namespace sees the mounts. */
  mountPoint: string;
  root: Overlay;
  usr: Overlay;
  /** The list of installed packages, so that more can be installed; null: there is none, or nobody who may. */
  packages: Overlay | null;
  /** Has the folders of all overlays and the workspace. */
  tree: string;
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

/**
 * own: the agent is root and commands run as `berth`, both of the machine. mapped: both are the one user that could be
 * mapped. ranged: commands have a user namespace with a range of ids, and the agent is root outside of it.
 */
export type JailUser =
  | { kind: "own" | "mapped" }
  | ({
      kind: "ranged";
      /** The path of the program of call-list.ts. */
      callList: string;
      /** Whether set-user-id programs such as sudo work. */
      sudo: boolean;
    } & IdRange);

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
