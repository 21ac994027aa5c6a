/**
 * The interface of Berth for code: the SDK implements it over HTTP, the Worker over the bindings of other Workers.
 * Methods that follow from their row are derived (verbs/types.ts); the others stand here.
 */
import type { ArchiveType, Unpacked } from "./archive.ts";
import type { Counts, SandboxesInput, SandboxesPage, TenantEvents } from "./directory.ts";
import type { EventsPage } from "./event.ts";
import type { FileView } from "./file.ts";
import type { LeaseGranted, LeaseReleased } from "./lease.ts";
import type { MetadataAnswer, MetadataPatch } from "./metadata.ts";
import type {
  Commit,
  CommitInput,
  CommitsPage,
  Member,
  MemberInput,
  Plan,
  PlansInput,
  PlansPage,
  RollbackInput,
} from "./plan.ts";
import type { LogsQuery } from "./process.ts";
import type { CreateInput, Sandbox } from "./sandbox.ts";
import type { DerivedSandboxApi } from "./verbs/derived.ts";
import type { GateOptions } from "./verbs/options.ts";

export type { GateOptions, IdempotentOptions } from "./verbs/options.ts";

type InSession = { session?: string };

/**
 * The bytes of an upload. A stream needs its length: if it ends earlier nothing is written, and bytes beyond the length
 * are not read. To another Worker a stream is a ReadableStream.
 */
export type Content = Uint8Array | { stream: AsyncIterable<Uint8Array>; bytes: number };

export type FileContent = {
  etag: string;
  /** Size of the whole file. */
  size: number;
  modifiedAt: string;
  /** The range that `body` contains: `end` is the byte after its last one. */
  start: number;
  end: number;
  body: AsyncIterable<Uint8Array>;
};

export type ReadOptions = InSession & {
  /** From `start` to before `end`, or to the end of the file. */
  range?: { start: number; end?: number };
};

export type WriteOptions = GateOptions &
  InSession & {
    mkdirs?: boolean;
    mode?: string;
    /** Replaces only the file with this entity tag, or (`*`) any file that exists. */
    ifMatch?: string;
    /** `*`: only if the path does not exist. */
    ifNoneMatch?: string;
  };

/** The methods of a sandbox that a row cannot describe. */
interface SpecialSandboxApi {
  renewLease(token: string, options?: { ttlMs?: number }): Promise<LeaseGranted>;
  releaseLease(token: string, options?: { force?: boolean }): Promise<LeaseReleased>;
  breakLease(reason: string): Promise<LeaseReleased>;
  patchMetadata(patch: MetadataPatch, options?: { ifMatch?: number }): Promise<MetadataAnswer>;
  replaceMetadata(to: MetadataPatch, options: { ifMatch: number }): Promise<MetadataAnswer>;
  events(query?: { after?: number; limit?: number }): Promise<EventsPage>;
  /** Server-sent events, until the sandbox is destroyed. */
  streamEvents(query?: { after?: number }): Promise<AsyncIterable<Uint8Array>>;
  /** Server-sent events; with `raw` and one `stream` the bytes themselves. */
  processLogs(
    id: string,
    query?: Partial<Omit<LogsQuery, "follow">> & { follow?: boolean; raw?: boolean },
  ): Promise<AsyncIterable<Uint8Array>>;
  readFile(path: string, options?: ReadOptions): Promise<FileContent>;
  writeFile(path: string, content: Content, options?: WriteOptions): Promise<FileView>;
  downloadArchive(
    path: string,
    options?: InSession & { type?: ArchiveType },
  ): Promise<AsyncIterable<Uint8Array>>;
  uploadArchive(
    path: string,
    content: Content,
    options?: GateOptions & InSession & { type?: ArchiveType },
  ): Promise<Unpacked>;
}

/** WebSockets have no method of their own: `hold` and `attachTerminal` of the SDK open them. */
type WebSocketVerb = "connectLease" | "connectTerminal";

type DerivedMethods = Omit<DerivedSandboxApi, keyof SpecialSandboxApi | WebSocketVerb>;

/** The methods whose REST call, RPC method and SDK method are derived from their row. */
export type DerivedMethod = keyof DerivedMethods;

/** One sandbox. */
export interface SandboxApi extends DerivedMethods, SpecialSandboxApi {}

export type CreateOptions = {
  idempotencyKey?: string | undefined;
  /** The lease of the sandbox that is replaced. */
  lease?: string | undefined;
  /** Replaces a sandbox although somebody else holds its lease. */
  force?: boolean | undefined;
};

export interface BerthApi {
  /** With a scope or an idempotency key: returns the sandbox that exists already. */
  create(call?: CreateInput, options?: CreateOptions): Promise<Sandbox>;
  list(query?: SandboxesInput): Promise<SandboxesPage>;
  counts(): Promise<Counts>;
  events(query?: { after?: number; limit?: number }): Promise<TenantEvents>;
  /** Server-sent events, without an end. */
  streamEvents(query?: { after?: number }): Promise<AsyncIterable<Uint8Array>>;
  sandbox(id: string): SandboxApi;
  plans(query?: PlansInput): Promise<PlansPage>;
  plan(name: string): PlanApi;
}

type RunOptions = {
  /** A repeated call with the same key is the same run. */
  idempotencyKey?: string;
};

export type PlanEnd = { sandboxes?: "keep" | "destroy"; force?: boolean };
export type MemberEnd = { sandbox?: "keep" | "destroy"; force?: boolean };

/** One plan. */
export interface PlanApi {
  /** Creates the plan, or finds it. */
  put(): Promise<Plan>;
  get(): Promise<Plan>;
  /** A sandbox whose lease is held is destroyed only with `force`. */
  remove(options?: PlanEnd): Promise<Plan>;
  putMember(key: string, call: MemberInput): Promise<Member>;
  removeMember(key: string, options?: MemberEnd): Promise<Member>;
  /** A run that is still `pending` continues by itself: `commitOf` waits for its end. */
  commit(call?: CommitInput, options?: RunOptions): Promise<Commit>;
  rollback(call?: RollbackInput, options?: RunOptions): Promise<Commit>;
  commits(query?: { limit?: number; cursor?: string }): Promise<CommitsPage>;
  commitOf(n: number, query?: { waitMs?: number }): Promise<Commit>;
}
