/** The RPC methods of a sandbox that rows cannot describe. rpc.ts derives the others and adds them. */
import { RpcTarget } from "cloudflare:workers";
import type { z } from "zod";
import { type Env, readConfig } from "../../config.ts";
import type { CallableVerb } from "../../objects/sandbox/dispatch/verb-call.ts";
import type {
  Content,
  FileContent,
  GateOptions,
  ReadOptions,
  SandboxApi,
  WriteOptions,
} from "../../protocol/api.ts";
import { eventsQuerySchema } from "../../protocol/event.ts";
import {
  type ArchiveType,
  archiveQuerySchema,
  type FileView,
  fileQuerySchema,
  putQuerySchema,
  type Unpacked,
} from "../../protocol/file.ts";
import type { TransferNoun } from "../../protocol/internal/transfer-call.ts";
import { renewCallSchema } from "../../protocol/lease.ts";
import { type MetadataPatch, metadataPatchSchema } from "../../protocol/metadata.ts";
import { type PortInput, portCallSchema } from "../../protocol/port.ts";
import { type Caller, type Right, tokenCallSchema } from "../../protocol/rights.ts";
import { splitArguments } from "../../protocol/verbs/arguments.ts";
import type { CallName } from "../../protocol/verbs/types.ts";
import { type VerbName, type VerbRow, verbs } from "../../protocol/verbs.ts";
import { requireRight, requireRights } from "../auth/auth.ts";
import { gatedOptions } from "../http/headers.ts";
import {
  type CallVerb,
  callsOf,
  type SandboxStub,
  sandboxObject,
  unwrap,
} from "../http/objects.ts";
import { contentOf, streamOf } from "../http/responses.ts";
import { validateTarget } from "../http/target.ts";
import { invalidField, validate } from "../http/validate.ts";
import { portOf } from "../ports/port-traffic.ts";
import { checkSize, requireArchiveType, transfer } from "./files.ts";
import { breakReason } from "./lease.ts";
import { logsQuery } from "./logs.ts";
import { createToken } from "./tokens.ts";

/** The caller of a binding, the sandbox that it calls, and the address at which people reach Berth. */
export type Binding = { env: Env; caller: Caller; id: string; url: string };

/** The methods that are written here: all that are not derived from a row. */
type SpecialMethods = Omit<SandboxApi, CallName<Exclude<CallableVerb & VerbName, SpecialVerb>>>;
type SpecialVerb =
  | "listEvents"
  | "openPort"
  | "patchMetadata"
  | "processLogs"
  | "releaseLease"
  | "renewLease"
  | "replaceMetadata";

type InSession = { session?: string };

export class SpecialTarget extends RpcTarget implements SpecialMethods {
  /** A property of the instance: other Workers reach only what is on the prototype. */
  readonly binding: Binding;

  constructor(binding: Binding) {
    super();
    this.binding = binding;
  }

  async renewLease(token: string, options: { ttlMs?: number } = {}) {
    const callVerb = this.#callsFor("renewLease");
    const { ttlMs } = validate(renewCallSchema, options);
    return unwrap(await callVerb("renewLease", { token, ttlMs }));
  }

  async releaseLease(token: string, { force = false }: { force?: boolean } = {}) {
    const callVerb = this.#callsFor("releaseLease");
    return unwrap(await callVerb("releaseLease", { token, force }));
  }

  async breakLease(reason: string) {
    const { env, caller, id } = this.binding;
    requireRight(caller, "admin", id);
    const callVerb = callsOf(env, id, caller, newId());
    return unwrap(await callVerb("breakLease", { reason: breakReason(reason) }));
  }

  async patchMetadata(patch: MetadataPatch, { ifMatch }: { ifMatch?: number } = {}) {
    const callVerb = this.#callsFor("patchMetadata");
    const change = validate(metadataPatchSchema, patch);
    return unwrap(await callVerb("patchMetadata", { change, ifMatch }));
  }

  async replaceMetadata(metadata: MetadataPatch, { ifMatch }: { ifMatch: number }) {
    const callVerb = this.#callsFor("replaceMetadata");
    const to = validate(metadataPatchSchema, metadata);
    return unwrap(await callVerb("replaceMetadata", { to, ifMatch }));
  }

  async events(fields: { after?: number; limit?: number } = {}) {
    const callVerb = this.#callsFor("listEvents");
    const query = validate(eventsQuerySchema, fields);
    return unwrap(await callVerb("listEvents", { query }));
  }

  async streamEvents({ after }: { after?: number } = {}) {
    const callVerb = this.#callsFor("listEvents");
    const query = validate(eventsQuerySchema, after === undefined ? {} : { after });
    return unwrap(await callVerb("followEvents", { after: query.after }));
  }

  async createToken(call: { rights: Right[]; ttlMs?: number | undefined }) {
    const { env, caller, id } = this.binding;
    this.#require("createToken");
    return createToken(env, caller, id, validate(tokenCallSchema, call), newId());
  }

  async openPort(port: PortInput) {
    const { env, id, url } = this.binding;
    const callVerb = this.#callsFor("openPort");
    const call = validate(portCallSchema, port);
    const opened = unwrap(await callVerb("openPort", { call }));
    return portOf(url, id, call, opened, readConfig(env).portsDomain);
  }

  async processLogs(
    id: string,
    options: Parameters<SandboxApi["processLogs"]>[1] = {},
  ): Promise<ReadableStream<Uint8Array>> {
    const callVerb = this.#callsFor("processLogs");
    const { raw = false, ...fields } = options;
    const target = String(validateTarget("process", this.binding.id, id));
    const { query } = splitArguments(verbs.processLogs, [id, fields]);
    const args = { target, query: logsQuery(query, raw), raw };
    return streamOf(await callVerb("processLogs", args));
  }

  async readFile(path: string, { range, ...options }: ReadOptions = {}): Promise<FileContent> {
    const headers = new Headers(range === undefined ? {} : { range: rangeHeader(range) });
    const fields = { path, ...options };
    return fileContentOf(await this.#download("files", fileQuerySchema, fields, headers));
  }

  async writeFile(
    path: string,
    content: Content,
    { ifMatch, ifNoneMatch, ...options }: WriteOptions = {},
  ): Promise<FileView> {
    const headers = new Headers();
    if (ifMatch !== undefined) headers.set("if-match", ifMatch);
    if (ifNoneMatch !== undefined) headers.set("if-none-match", ifNoneMatch);
    const upload = { path, content, headers, options };
    return contentOf(await this.#upload("writeFile", putQuerySchema, upload));
  }

  async downloadArchive(
    path: string,
    { type = "application/x-tar", ...options }: InSession & { type?: ArchiveType } = {},
  ): Promise<ReadableStream<Uint8Array>> {
    requireArchiveType(type);
    const headers = new Headers({ accept: type });
    const fields = { path, ...options };
    return streamOf(await this.#download("archive", archiveQuerySchema, fields, headers));
  }

  async uploadArchive(
    path: string,
    content: Content,
    {
      type = "application/x-tar",
      ...options
    }: GateOptions & InSession & { type?: ArchiveType } = {},
  ): Promise<Unpacked> {
    requireArchiveType(type);
    const headers = new Headers({ "content-type": type });
    const upload = { path, content, headers, options };
    return contentOf(await this.#upload("uploadArchive", archiveQuerySchema, upload));
  }

  async #download(noun: TransferNoun, schema: z.ZodType, fields: object, headers: Headers) {
    const object = this.#require("readFile");
    const query = validate(schema, fields) as Record<string, string>;
    const { caller } = this.binding;
    return transfer(object, { call: { caller, noun }, query, headers, requestId: newId() });
  }

  async #upload(
    name: "writeFile" | "uploadArchive",
    schema: z.ZodType,
    upload: { path: string; content: Content; headers: Headers; options: object },
  ) {
    const object = this.#require(name);
    const { path, content, headers, options } = upload;
    const parts = splitArguments(verbs[name], [content, { path, ...options }]);
    const query = validate(schema, parts.query) as Record<string, string>;
    const body = bodyOf(content);
    const { caller } = this.binding;
    const noun = name === "writeFile" ? "files" : "archive";
    const call = { caller, noun, gated: gatedOptions(parts.headers) } as const;
    return transfer(object, { call, query, headers, body, requestId: newId() });
  }

  #callsFor(name: VerbName): CallVerb {
    const { env, caller, id } = this.binding;
    this.#require(name);
    return callsOf(env, id, caller, newId());
  }

  #require(name: VerbName): SandboxStub {
    const { env, caller, id } = this.binding;
    const row: VerbRow = verbs[name];
    requireRights(caller, row, id);
    return sandboxObject(env, id);
  }
}

function newId(): string {
  return crypto.randomUUID();
}

export function bodyOf(content: Content): Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> {
  if (content instanceof Uint8Array) {
    checkSize(content.length);
    return content as Uint8Array<ArrayBuffer>;
  }
  const { stream, bytes } = content ?? {};
  if (!(stream instanceof ReadableStream)) {
    throw invalidField(
      "content",
      "must be a Uint8Array, or a `stream` with how many `bytes` it has",
    );
  }
  checkSize(bytes);
  const { readable, writable } = new FixedLengthStream(bytes);
  // The reader of the other end sees a failure.
  stream.pipeTo(writable).catch(() => undefined);
  return readable;
}

function rangeHeader({ start, end }: NonNullable<ReadOptions["range"]>): string {
  const isOffset = (offset: number) => Number.isSafeInteger(offset) && offset >= 0;
  if (!isOffset(start)) throw invalidField("range", "`start` must be a whole number");
  if (end === undefined) return `bytes=${start}-`;
  if (!isOffset(end) || end <= start)
    throw invalidField("range", "`end` must be a whole number above start");
  return `bytes=${start}-${end - 1}`;
}

async function fileContentOf(answer: Response): Promise<FileContent> {
  const { headers } = answer;
  const part = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers.get("content-range") ?? "");
  const length = Number(headers.get("content-length") ?? 0);
  const [start, end, size] =
    part === null ? [0, length, length] : [Number(part[1]), Number(part[2]) + 1, Number(part[3])];
  const isEmpty = answer.ok && answer.body === null;
  return {
    body: isEmpty ? new Blob([]).stream() : await streamOf(answer),
    etag: headers.get("etag") ?? "",
    modifiedAt: new Date(headers.get("last-modified") ?? 0).toISOString(),
    start,
    end,
    size,
  };
}
