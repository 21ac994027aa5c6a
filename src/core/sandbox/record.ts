/** Describes what an object stores about its sandbox: the spec, and the state. */
import type { Client, Scope } from "../../protocol/fields/scope.ts";
import type { Size } from "../../protocol/fields/size.ts";
import type { Isolation } from "../../protocol/health.ts";
import type { FailReason, Network, OnEnd, OnIdle } from "../../protocol/sandbox.ts";
import type { ServiceCall } from "../../protocol/service.ts";

/** What `create` was called with, and later changes of its settings. */
export type SandboxSpec = {
  id: string;
  tenant: string;
  createdAt: number;
  env: Record<string, string>;
  cwd?: string | undefined;
  /** Who runs commands, unless their call says otherwise; undefined: the default user. */
  user?: string | undefined;
  /** Name, tag and version of the template that it was created from. */
  template?: string | undefined;
  image?: string | undefined;
  /** On one machine: the digest of its manifest. The files of the sandbox stand on exactly these layers. */
  imageDigest?: string | undefined;
  size?: Size | undefined;
  network: Network;
  idleTimeoutMs: number;
  onIdle: OnIdle;
  maxLifetimeMs?: number | undefined;
  destroyPausedAfterMs?: number | undefined;
  /** Null: never. Undefined: never, unless files do not outlive their container. */
  checkpointEveryMs?: number | null | undefined;
  keepCheckpoints?: number | undefined;
  services?: ServiceCall[] | undefined;
  /** Grows with each change of the settings; undefined: never changed. */
  settingsVersion?: number | undefined;
  /** From each start to the end of that run. */
  endAfterMs?: number | undefined;
  onEnd?: OnEnd | undefined;
  /** Whether commands may become root inside; undefined: they may. */
  sudo?: boolean | undefined;
  /** Whether ports are reached without a token. */
  publicPorts?: boolean | undefined;
  /** Whether a call that needs a container may start it. */
  wake: "auto" | "never";
  /** The repository and branch for which it was created. */
  scope?: Scope | undefined;
  client?: Client | undefined;
  /** The beginning of the digest of the key that created it. */
  madeBy?: string | undefined;
  /** The id of the checkpoint that it was forked from. */
  from?: string | undefined;
  /** The saved tree of that checkpoint. It starts with these files until it has files of its own. */
  base?: string | undefined;
};

/** One attempt to start a container. The agent in it will demand the secret from its callers. */
export type Start = {
  startId: string;
  secret: string;
  /** Start with the files of this checkpoint: for a restore, and after a pause that has saved the files. */
  snapshot?: string | undefined;
};

/** One run of the agent, as its first response described it. */
export type Incarnation = {
  incarnation: string;
  secret: string;
  address: string;
  files: "new" | "kept" | "snapshot" | "image";
  isolation: Isolation;
  notes: string[];
  /** The run of the server in which it started, on one machine: it has ended with that. */
  serverRun?: string;
};

/** Why a sandbox is paused whose container ended with its server or its engine. It can go on with its files. */
export const serverEnded = "server_ended";

/** In transient states `until` is the time limit, and `lookAt` the next time to check the progress. */
export type SandboxState =
  /** A container is being started. */
  | { name: "starting"; since: number; until: number; lookAt: number; start: Start }
  /**
   * The agent has responded. `activeAt` is the last activity that was stored; memory may know of later activity. `endsAt`:
   * when the run ends, whatever it does.
   */
  | {
      name: "running";
      since: number;
      activeAt: number;
      life: Incarnation;
      endsAt?: number | undefined;
    }
  /** The container is being stopped, after its files are saved if necessary. */
  | {
      name: "pausing";
      since: number;
      until: number;
      lookAt: number;
      reason: string;
      /** It continues to run if its files cannot be saved. */
      life: Incarnation;
      /** Whether the files must be saved first, because they would be lost with the container. */
      save: boolean;
      /** The checkpoint with the saved files. */
      saved?: string;
      /** Set if a start was requested during the pause: it follows at once. */
      next?: Start;
    }
  /** No container runs. The files are kept on disk or in the checkpoint `saved`. A start ends it, or `destroyPausedAfterMs`. */
  | { name: "paused"; since: number; reason: string; saved?: string | undefined }
  /** The container was lost or did not start. No deadline: a start or, if `restartable`, the next call ends it. */
  | {
      name: "failed";
      since: number;
      reason: FailReason;
      restartable: boolean;
      /** Why, in the words of the platform. */
      message?: string;
      /** Set if the start failed for a temporary reason: the machine is full or its engine does not respond. */
      passes?: true;
    }
  /** The container and all files are being deleted, with a new try at `tryAt`. */
  | { name: "destroying"; since: number; tryAt: number; tries: number; reason: string }
  /** Everything is deleted. The row remains as a tombstone for a while. */
  | { name: "destroyed"; since: number; reason: string };

export type SandboxRecord = {
  spec: SandboxSpec;
  state: SandboxState;
  /** When it was restarted after a loss: the newest few, oldest first. */
  restarts: number[];
  /** When it ran out of memory, within the same window: oldest first. */
  outOfMemory: number[];
  /** When a caller last restored a checkpoint. */
  restoredAt?: number | undefined;
};
