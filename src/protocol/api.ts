/**
 * Owns the one interface of a sandbox for those who call it from code: other Workers, the SDK, tests.
 * Does not own how a call travels.
 */
import type { Checkpoint, CheckpointInput, Checkpoints } from "./checkpoint.ts";
import type { Counts, SandboxesInput, SandboxesPage, TenantEvents } from "./directory.ts";
import type { EventsPage } from "./event.ts";
import type { ExecInput, ExecResult } from "./exec.ts";
import type { FileApi } from "./file-api.ts";
import type { AcquireInput, LeaseGranted, LeaseQueued, LeaseReleased, LeaseView } from "./lease.ts";
import type { MetadataAnswer, MetadataPatch } from "./metadata.ts";
import type { PlansInput, PlansPage } from "./plan.ts";
import type { PlanApi } from "./plan-api.ts";
import type { Port, PortInput, PortList } from "./port.ts";
import type { ConnectTicket, Right, Token } from "./rights.ts";
import type { CreateInput, Sandbox } from "./sandbox.ts";
import type { KeyedOptions, WorkApi } from "./work-api.ts";

/** For gated calls: the token of a lease, or how long the call may queue to run alone. */
export type GateOptions = { lease?: string; waitMs?: number; wake?: boolean };

export interface SandboxApi extends WorkApi, FileApi {
  get(): Promise<Sandbox>;
  start(): Promise<Sandbox>;
  pause(options?: GateOptions & { force?: boolean; discardFiles?: boolean }): Promise<Sandbox>;
  touch(): Promise<Sandbox>;
  destroy(options?: GateOptions & { force?: boolean }): Promise<Sandbox>;
  exec(call: ExecInput, options?: KeyedOptions): Promise<ExecResult>;
  makeCheckpoint(call?: CheckpointInput, options?: GateOptions): Promise<Checkpoint>;
  checkpoints(): Promise<Checkpoints>;
  checkpoint(id: string): Promise<Checkpoint>;
  removeCheckpoint(id: string): Promise<Checkpoint>;
  /** Begins a new life from its files. */
  restore(id: string, options?: GateOptions): Promise<Sandbox>;
  acquireLease(call?: AcquireInput): Promise<LeaseGranted | LeaseQueued>;
  renewLease(token: string, options?: { ttlMs?: number }): Promise<LeaseGranted>;
  releaseLease(token: string, options?: { force?: boolean }): Promise<LeaseReleased>;
  breakLease(reason: string): Promise<LeaseReleased>;
  lease(): Promise<LeaseView>;
  metadata(): Promise<MetadataAnswer>;
  patchMetadata(patch: MetadataPatch, options?: { ifMatch?: number }): Promise<MetadataAnswer>;
  replaceMetadata(to: MetadataPatch, options: { ifMatch: number }): Promise<MetadataAnswer>;
  events(query?: { after?: number; limit?: number }): Promise<EventsPage>;
  /** Server-sent events, until the sandbox is destroyed. */
  streamEvents(query?: { after?: number }): Promise<AsyncIterable<Uint8Array>>;
  createToken(call: { rights: Right[]; ttlMs?: number }): Promise<Token>;
  revokeTokens(): Promise<void>;
  createTicket(): Promise<ConnectTicket>;
  /** An address by which others reach a server in the sandbox. Asked again, it gets a new one. */
  openPort(call: PortInput): Promise<Port>;
  ports(): Promise<PortList>;
  closePort(port: number): Promise<void>;
}

/** `lease`, `force`: of one that replaces another, whose lease may be held. */
export type CreateOptions = {
  idempotencyKey?: string | undefined;
  lease?: string | undefined;
  force?: boolean | undefined;
};

export interface BerthApi {
  /** With a scope or a key: finds the one that is there already. */
  create(call?: CreateInput, options?: CreateOptions): Promise<Sandbox>;
  list(query?: SandboxesInput): Promise<SandboxesPage>;
  counts(): Promise<Counts>;
  events(query?: { after?: number; limit?: number }): Promise<TenantEvents>;
  /** Server-sent events, for as long as they are read. */
  streamEvents(query?: { after?: number }): Promise<AsyncIterable<Uint8Array>>;
  sandbox(id: string): SandboxApi;
  plans(query?: PlansInput): Promise<PlansPage>;
  plan(name: string): PlanApi;
}
