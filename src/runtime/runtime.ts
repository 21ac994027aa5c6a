/**
 * Owns the one interface by which an object reaches its container, whoever runs it.
 * Does not own policy: when to start, stop or give up is decided in core.
 */
import type { Changes, ChangesCall } from "../protocol/changes.ts";
import type { Env } from "../protocol/fields/env.ts";
import type { Isolation } from "../protocol/fields/isolation.ts";
import type { Size } from "../protocol/fields/size.ts";
import type { EngineExit } from "../protocol/internal/engine.ts";
import type { Network } from "../protocol/sandbox.ts";

export type StartOptions = {
  /** Drawn by the object for this start; the agent's incarnation begins with it. */
  startId: string;
  /** What the agent demands on every call of this life. */
  secret: string;
  env: Env;
  network: Network;
  image?: string;
  /** What the place cannot hold it to is refused. */
  size?: Size;
  /** Begin from this saved tree, whatever is kept. */
  snapshot?: string | undefined;
  /** Begin from this saved tree where no other files are known. */
  base?: string | undefined;
};

export type Started = {
  incarnation: string;
  /** Kept in the object's row: after an eviction it finds the agent here again. */
  address: string;
  files: "new" | "kept" | "snapshot" | "image";
  isolation: Isolation;
  notes: string[];
};

/** How one life of an agent is reached. The platform has one agent in a container and needs no address. */
export type AgentAddress = { incarnation: string; secret: string; address: string };

export type ContainerExit = Omit<EngineExit, "startId">;

/** A saved tree, under the name by which `start` takes it. */
export type Saved = { handle: string; bytes: number };

export interface Container {
  /** Whether the files outlive a container that is destroyed with "keep". Where not, a pause must save them. */
  readonly keepsFiles: boolean;
  /** Whether its tree can be saved here at all. */
  readonly savesFiles: boolean;
  /** Whether saved trees can be looked into here, so that two of them can be compared. */
  readonly comparesTrees: boolean;
  /** Whether it can hold a sandbox to a list of hosts. Where not, such a list is refused: it would be a promise unkept. */
  readonly filtersHosts: boolean;
  /** Starts it, or joins the start of the same start id. Answers when the agent does. */
  start(options: StartOptions): Promise<Started>;
  /** Ends it, whatever runs inside. Ending what does not run is success. */
  destroy(files: "keep" | "remove"): Promise<void>;
  /** To every process in the container but the agent. */
  signal(signal: number): Promise<void>;
  /** What is known of why this life ended, once it has; undefined where it has not in this time. */
  monitor(startId: string, waitMs: number): Promise<ContainerExit | undefined>;
  /** One request, or WebSocket upgrade, to the agent at the address that `start` gave; asked as `fetch` is. */
  agent(address: string, request: Request | string, init?: RequestInit): Promise<Response>;
  /** Saves the file tree; everything in the container stands still meanwhile. The same id again: the same tree. */
  snapshot(snapshotId: string): Promise<Saved>;
  /** One that is just being made is waited for. Removing what is not there is success. */
  removeSnapshot(handle: string): Promise<void>;
  /** What differs between the workspaces of two saved trees, by their handles. Undefined where none can be looked into. */
  changes(call: ChangesCall): Promise<Changes | undefined>;
}
