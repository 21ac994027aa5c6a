/** What templates need from other objects. Each call is harmless when repeated. */
import type { ProcessEnd } from "../../core/template/build.ts";
import type { BuildAction } from "../../core/template/steps.ts";
import type { Sandbox } from "../../protocol/sandbox.ts";
import type { NewSandbox } from "../sandbox/lifecycle/lifecycle.ts";
import type { Result } from "../shared/result.ts";

/** A part of the output of a process, and its end if it has exited. */
export type ProcessOutput = { pieces: Uint8Array[]; cursor: number; end?: ProcessEnd };

export type StoredTree = { handle: string; bytes: number; expiresAt: number | null };

/** The sandbox of a build. */
export interface BuilderPort {
  waitUntilStarted(waitMs: number): Promise<Sandbox>;
  /** Starts the action, or finds it started by the same key; returns the id of its process. */
  start(action: BuildAction, key: string): Promise<string>;
  /** Returns when the process has exited, or after `waitMs`. */
  waitForExit(process: string, waitMs: number): Promise<void>;
  readOutput(process: string, after: number): Promise<ProcessOutput>;
  /** Saves the tree under this handle; the sandbox does not remove it when it ends. */
  save(handle: string): Promise<StoredTree>;
  /** Destroys the sandbox. Succeeds if there is none. */
  end(): Promise<void>;
}

export type TemplatePorts = {
  /** Creates the sandbox, or finds it created by this same call. */
  make(call: NewSandbox): Promise<Result<null>>;
  builderOf(build: { tenant: string; sandbox: string }): BuilderPort;
  /** Whether the sandbox may still start from the tree. */
  needsTree(sandbox: string, stored: string): Promise<boolean>;
  /** Succeeds if there is no such tree. */
  removeTree(stored: string): Promise<void>;
};
