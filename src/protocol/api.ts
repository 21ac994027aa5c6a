/**
 * Owns the one interface of a sandbox for those who call it from code: other Workers, the SDK, tests.
 * Does not own how a call travels.
 */
import type { ExecInput, ExecResult } from "./exec.ts";
import type { CreateInput, Sandbox } from "./sandbox.ts";

export interface SandboxApi {
  get(): Promise<Sandbox>;
  exec(call: ExecInput): Promise<ExecResult>;
  destroy(): Promise<Sandbox>;
}

export interface BerthApi {
  create(call?: CreateInput): Promise<Sandbox>;
  sandbox(id: string): SandboxApi;
}
