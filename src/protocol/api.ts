/**
 * The TypeScript interface of Berth: the SDK implements it over HTTP, the Worker for service bindings.
 * Most methods are derived from their row (verbs/types.ts); this file declares the others.
 */
import type { Counts, SandboxesInput, SandboxesPage, TenantEvents } from "./directory.ts";
import type { EventsPage } from "./event.ts";
import type { ArchiveType, FileView, Unpacked } from "./file.ts";
import type { Image, Images } from "./image.ts";
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
import type {
  Template,
  TemplateInput,
  TemplateLog,
  TemplateLogInput,
  Templates,
} from "./template.ts";
import type { DerivedSandboxApi } from "./verbs/derived.ts";
import type { GateOptions } from "./verbs/options.ts";

export type { GateOptions, IdempotentOptions } from "./verbs/options.ts";

/** Relative paths are resolved against the working folder of this session. */
type InSession = { session?: string | undefined };

/**
 * The bytes of an upload. A stream declares its length: if it ends earlier, nothing is written; bytes beyond the length
 * are not read. Over a service binding the stream must be a ReadableStream.
 */
export type Content = Uint8Array | { stream: AsyncIterable<Uint8Array>; bytes: number };

export type FileContent = {
  etag: string;
  /** Bytes of the whole file. */
  size: number;
  /** ISO 8601. */
  modifiedAt: string;
  /** The range of bytes that `body` contains; `end` is exclusive. */
  start: number;
  end: number;
  body: AsyncIterable<Uint8Array>;
};

export type ReadOptions = InSession & {
  /** Bytes from `start` to `end` (exclusive), or to the end of the file. The whole file by default. */
  range?: { start: number; end?: number };
};

export type WriteOptions = GateOptions &
  InSession & {
    /** Creates missing parent folders; false by default. */
    mkdirs?: boolean;
    /** Octal mode such as `644`. A replaced file keeps its mode by default. */
    mode?: string;
    /** Writes only if the file has this `etag`, or with `*` only if it exists. */
    ifMatch?: string;
    /** With `*`: writes only if the path does not exist. */
    ifNoneMatch?: string;
  };

/** Methods of a sandbox that cannot be derived from a row. */
interface SpecialSandboxApi {
  /** `ttlMs`: milliseconds from now; the `ttlMs` of the lease by default. */
  renewLease(token: string, options?: { ttlMs?: number }): Promise<LeaseGranted>;
  /** Fails while calls of the lease run, unless `force` ends them. */
  releaseLease(token: string, options?: { force?: boolean }): Promise<LeaseReleased>;
  /** Revokes the lease of its holder, who sees the reason. */
  breakLease(reason: string): Promise<LeaseReleased>;
  /** `null` or an empty string removes a key; other keys stay. `ifMatch` is the expected version. */
  patchMetadata(patch: MetadataPatch, options?: { ifMatch?: number }): Promise<MetadataAnswer>;
  /** Removes all other keys. `ifMatch` is the expected version. */
  replaceMetadata(to: MetadataPatch, options: { ifMatch: number }): Promise<MetadataAnswer>;
  /** One page of stored events, oldest first; `after` is the `seq` of the last event already seen. */
  events(query?: { after?: number; limit?: number }): Promise<EventsPage>;
  /** A stream of server-sent events that ends when the sandbox is destroyed. */
  streamEvents(query?: { after?: number }): Promise<AsyncIterable<Uint8Array>>;
  /** A stream of server-sent events; with `raw` and a `stream`, the bytes themselves. */
  processLogs(
    id: string,
    query?: Partial<Omit<LogsQuery, "follow">> & { follow?: boolean; raw?: boolean },
  ): Promise<AsyncIterable<Uint8Array>>;
  /** Reads a file, or a range of it. The body is streamed, and can be read once. */
  readFile(path: string, options?: ReadOptions): Promise<FileContent>;
  /** Creates or replaces a file atomically. */
  writeFile(path: string, content: Content, options?: WriteOptions): Promise<FileView>;
  /** A folder or file as a tar stream, compressed according to `type`. */
  downloadArchive(
    path: string,
    options?: InSession & { type?: ArchiveType },
  ): Promise<AsyncIterable<Uint8Array>>;
  /** Unpacks an archive into a folder. */
  uploadArchive(
    path: string,
    content: Content,
    options?: GateOptions & InSession & { type?: ArchiveType },
  ): Promise<Unpacked>;
}

/** Verbs without a method: `hold` and `attachTerminal` of the SDK open these WebSockets. */
type WebSocketVerb = "connectLease" | "connectTerminal";

type DerivedMethods = Omit<DerivedSandboxApi, keyof SpecialSandboxApi | WebSocketVerb>;

/** Methods whose REST route, RPC method and SDK method are derived from their row. */
export type DerivedMethod = keyof DerivedMethods;

/** The methods of one sandbox. */
export interface SandboxApi extends DerivedMethods, SpecialSandboxApi {}

export type CreateOptions = {
  /** A repeated call with the same key returns the same sandbox. */
  idempotencyKey?: string | undefined;
  /** The token of the lease of the sandbox that is replaced. */
  lease?: string | undefined;
  /** Replaces a sandbox even if its lease is held; false by default. */
  force?: boolean | undefined;
};

/** The methods that concern all sandboxes and plans of a key. */
export interface BerthApi {
  /** With a scope or an idempotency key, returns the sandbox if it exists. */
  create(call?: CreateInput, options?: CreateOptions): Promise<Sandbox>;
  /** One page of the sandboxes that match, newest first. */
  list(query?: SandboxesInput): Promise<SandboxesPage>;
  /** The number of sandboxes in each state. */
  counts(): Promise<Counts>;
  /** One page of the state and metadata events of all sandboxes; `after` is the `seq` of the last event already seen. */
  events(query?: { after?: number; limit?: number }): Promise<TenantEvents>;
  /** A stream of server-sent events that does not end. */
  streamEvents(query?: { after?: number }): Promise<AsyncIterable<Uint8Array>>;
  /** The methods of one sandbox. Sends no request, so the sandbox need not exist. */
  sandbox(id: string): SandboxApi;
  /** The images of the machine, and the pulls. */
  images(): Promise<Images>;
  /** One image, or the progress of its pull. */
  image(reference: string): Promise<Image>;
  /** Begins to build a template. Returns at once. */
  buildTemplate(call: TemplateInput): Promise<Template>;
  /** All templates, by name and tag. */
  templates(): Promise<Templates>;
  /** The methods of one template. Sends no request, so the template need not exist. */
  template(reference: string): TemplateApi;
  /** One page of plans, by name. */
  plans(query?: PlansInput): Promise<PlansPage>;
  /** The methods of one plan. Sends no request, so the plan need not exist. */
  plan(name: string): PlanApi;
}

/** The methods of one template, by `name` or `name:tag`. */
export interface TemplateApi {
  /** The template with its newest build; waits up to `waitMs` for the end of that. */
  get(query?: { waitMs?: number | undefined }): Promise<Template>;
  /** What the newest build has written after a cursor; waits up to `waitMs` for more. */
  log(query?: TemplateLogInput): Promise<TemplateLog>;
  /** Cancels the build that runs. A version that was built earlier stays. */
  cancel(): Promise<Template>;
  /** Removes the template. Sandboxes that were created from it keep their files. */
  remove(): Promise<Template>;
}

type RunOptions = {
  /** A repeated call with the same key returns the same run. */
  idempotencyKey?: string | undefined;
};

/** What becomes of the sandboxes (`keep` by default); `force` destroys them even if their lease is held. */
export type PlanEnd = { sandboxes?: "keep" | "destroy" | undefined; force?: boolean | undefined };
/** What becomes of the sandbox (`keep` by default); `force` destroys it even if its lease is held. */
export type MemberEnd = { sandbox?: "keep" | "destroy" | undefined; force?: boolean | undefined };

/** The methods of one plan: several sandboxes that are committed or rolled back together. */
export interface PlanApi {
  /** Creates the plan, or returns it if it exists. */
  put(): Promise<Plan>;
  /** The plan with its members and its running commit. */
  get(): Promise<Plan>;
  /** Deletes the plan. A sandbox whose lease is held is destroyed only with `force`. */
  remove(options?: PlanEnd): Promise<Plan>;
  /** Creates the member of this key, adds an existing sandbox as it, or replaces it. A repeated call finds it. */
  putMember(key: string, call: MemberInput): Promise<Member>;
  /** Removes the member, and keeps or destroys its sandbox. */
  removeMember(key: string, options?: MemberEnd): Promise<Member>;
  /**
   * Saves all members together. A run that is returned as `pending` continues in the background: `commitOf` waits for its
   * end.
   */
  commit(call?: CommitInput, options?: RunOptions): Promise<Commit>;
  /** Restores the files of the last commit in all members. */
  rollback(call?: RollbackInput, options?: RunOptions): Promise<Commit>;
  /** One page of commits and rollbacks, newest first. */
  commits(query?: { limit?: number; cursor?: string }): Promise<CommitsPage>;
  /** One commit or rollback by its number; waits up to `waitMs` for its end. */
  commitOf(n: number, query?: { waitMs?: number }): Promise<Commit>;
}
