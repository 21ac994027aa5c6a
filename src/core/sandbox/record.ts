/**
 * Owns the facts that an object keeps of its sandbox, and its states: a union whose variants carry their own facts.
 * Does not own the moves between them (step.ts).
 */
import type { Isolation } from "../../protocol/fields/isolation.ts";
import type { Client, Scope } from "../../protocol/fields/scope.ts";
import type { Size } from "../../protocol/fields/size.ts";
import type { FailReason, Network, OnIdle } from "../../protocol/sandbox.ts";

/** What `create` was given; it never changes. */
export type SandboxSpec = {
  id: string;
  tenant: string;
  createdAt: number;
  env: Record<string, string>;
  cwd?: string | undefined;
  image?: string | undefined;
  size?: Size | undefined;
  network: Network;
  idleTimeoutMs: number;
  onIdle: OnIdle;
  maxLifetimeMs?: number | undefined;
  /** Whether a call that needs a container may start it. */
  wake: "auto" | "never";
  /** What its maker stood on. */
  scope?: Scope | undefined;
  client?: Client | undefined;
  /** The beginning of the digest of the key that made it. */
  madeBy?: string | undefined;
  /** The saved tree that it was forked from: where it has no files of its own yet, it begins from these. */
  base?: string | undefined;
};

/** One attempt to give the sandbox a container. The secret is what its agent will demand. */
export type Start = {
  startId: string;
  secret: string;
  /** Begin from this saved tree: what a restore is, and a start from what a pause has saved. */
  snapshot?: string | undefined;
};

/** One life of the agent, pinned at its first answer. */
export type Life = {
  incarnation: string;
  secret: string;
  address: string;
  files: "new" | "kept" | "snapshot" | "image";
  isolation: Isolation;
  notes: string[];
};

export type SandboxState =
  | { name: "starting"; since: number; until: number; lookAt: number; start: Start }
  /** `activeAt`: the last work that was noted; memory may know of later work. */
  | { name: "running"; since: number; activeAt: number; life: Life }
  | {
      name: "pausing";
      since: number;
      until: number;
      lookAt: number;
      reason: string;
      /** What goes on where the files could not be saved. */
      life: Life;
      /** Where they do not outlive their container they are saved first, unless nobody wants them. */
      save: boolean;
      /** They are, under this name. */
      saved?: string;
      /** Somebody wants it running again: it starts as soon as it is paused. */
      next?: Start;
    }
  | { name: "paused"; since: number; reason: string; saved?: string | undefined }
  | {
      name: "failed";
      since: number;
      reason: FailReason;
      restartable: boolean;
      /** Of a start that was refused for what passes by itself: no room on the machine, or nobody there to ask. */
      passes?: true;
    }
  | { name: "destroying"; since: number; tryAt: number; tries: number; reason: string }
  | { name: "destroyed"; since: number; reason: string };

export type SandboxRecord = {
  spec: SandboxSpec;
  state: SandboxState;
  /** When it was started again after a loss: the newest few, oldest first. */
  restarts: number[];
  /** When it ended for want of memory, in the same window: oldest first. */
  outOfMemory: number[];
};
