/**
 * Owns the verbs about files of one sandbox, as methods for other Workers.
 * Does not own the rest of them: sandbox.ts builds on this.
 */
import type { z } from "zod";
import type { FileLook, FileWork } from "../../objects/sandbox/dispatch/files-call.ts";
import type { GateOptions } from "../../protocol/api.ts";
import { type ArchiveType, archiveQuerySchema, type Unpacked } from "../../protocol/archive.ts";
import {
  type FilesPage,
  type FileView,
  fileQuerySchema,
  type ListQuery,
  listQuerySchema,
  type MkdirInput,
  type MoveInput,
  mkdirCallSchema,
  moveCallSchema,
  putQuerySchema,
  type Removed,
  removeQuerySchema,
  type WatchQuery,
  watchQuerySchema,
} from "../../protocol/file.ts";
import type {
  Content,
  FileApi,
  FileContent,
  ReadOptions,
  WriteOptions,
} from "../../protocol/file-api.ts";
import { type CloneInput, cloneCallSchema } from "../../protocol/git.ts";
import type { TransferNoun } from "../../protocol/internal/transfer-call.ts";
import { checkedQuery } from "../file-queries.ts";
import { parseCall } from "../http/body.ts";
import { contentOf, streamOf } from "../http/reply.ts";
import { checkArchiveType } from "../routes/archives.ts";
import { transfer } from "../special/transfer.ts";
import { gated } from "./calling.ts";
import { bodyOf, fileContentOf, rangeHeader } from "./file-content.ts";
import { WorkTarget } from "./work.ts";

type At = { session?: string };
type Schema = z.ZodType;

export class FileTarget extends WorkTarget implements FileApi {
  async readFile(path: string, { range, ...at }: ReadOptions = {}): Promise<FileContent> {
    const headers = new Headers(range === undefined ? {} : { range: rangeHeader(range) });
    return fileContentOf(await this.#download("files", fileQuerySchema, { path, ...at }, headers));
  }

  async writeFile(
    path: string,
    content: Content,
    { lease, waitMs, wake, ifMatch, ifNoneMatch, ...how }: WriteOptions = {},
  ): Promise<FileView> {
    const headers = new Headers();
    if (ifMatch !== undefined) headers.set("if-match", ifMatch);
    if (ifNoneMatch !== undefined) headers.set("if-none-match", ifNoneMatch);
    const fields = { path, ...flags(how) };
    const asked = { fields, headers, content, gate: { lease, waitMs, wake } };
    return contentOf(await this.#upload("files", putQuerySchema, asked));
  }

  async removeFile(
    path: string,
    { session, recursive, ...gate }: GateOptions & At & { recursive?: boolean } = {},
  ): Promise<Removed> {
    return this.#work(gate, () => ({
      do: "remove",
      query: checkedQuery(removeQuerySchema, { path, ...flags({ session, recursive }) }),
    }));
  }

  async stat(path: string, at: At = {}): Promise<FileView> {
    return contentOf(await this.#look("stat", fileQuerySchema, { path, ...at }));
  }

  async listFiles(query: ListQuery = {}): Promise<FilesPage> {
    return contentOf(await this.#look("list", listQuerySchema, query));
  }

  async mkdir(call: MkdirInput, options: GateOptions = {}): Promise<FileView> {
    return this.#work(options, () => ({ do: "mkdir", call: parseCall(mkdirCallSchema, call) }));
  }

  async move(call: MoveInput, options: GateOptions = {}): Promise<FileView> {
    return this.#work(options, () => ({ do: "move", call: parseCall(moveCallSchema, call) }));
  }

  async watchFiles(
    query: Omit<WatchQuery, "recursive"> & { recursive?: boolean } = {},
  ): Promise<ReadableStream<Uint8Array>> {
    return streamOf(await this.#look("watch", watchQuerySchema, flags(query)));
  }

  async downloadArchive(
    path: string,
    { type = "application/x-tar", ...at }: At & { type?: ArchiveType } = {},
  ): Promise<ReadableStream<Uint8Array>> {
    checkArchiveType(type);
    const headers = new Headers({ accept: type });
    return streamOf(await this.#download("archive", archiveQuerySchema, { path, ...at }, headers));
  }

  async uploadArchive(
    path: string,
    content: Content,
    {
      session,
      type = "application/x-tar",
      ...gate
    }: GateOptions & At & { type?: ArchiveType } = {},
  ): Promise<Unpacked> {
    checkArchiveType(type);
    const headers = new Headers({ "content-type": type });
    const asked = { fields: { path, ...flags({ session }) }, headers, content, gate };
    return contentOf(await this.#upload("archive", archiveQuerySchema, asked));
  }

  async cloneRepository(
    call: CloneInput,
    options: GateOptions = {},
  ): Promise<ReadableStream<Uint8Array>> {
    const read = (): FileWork => ({ do: "clone", call: parseCall(cloneCallSchema, call) });
    return streamOf(await this.#reply(options, read));
  }

  async #look(look: FileLook["look"], schema: Schema, fields: object) {
    const object = this.calling.object("files");
    const query = checkedQuery(schema, fields);
    return object.lookAtFiles(this.calling.caller, { look, query }, crypto.randomUUID());
  }

  async #work<T extends object>(options: GateOptions, read: () => FileWork): Promise<T> {
    return contentOf(await this.#reply(options, read));
  }

  async #reply(options: GateOptions, read: () => FileWork) {
    const object = this.calling.object("files");
    const { caller } = this.calling;
    return object.workOnFiles(caller, gated(options), read(), crypto.randomUUID());
  }

  async #download(noun: TransferNoun, schema: Schema, fields: object, headers: Headers) {
    const object = this.calling.object("files");
    const query = checkedQuery(schema, fields);
    const { caller } = this.calling;
    const requestId = crypto.randomUUID();
    return transfer(object, { call: { caller, noun }, query, headers, requestId });
  }

  async #upload(
    noun: TransferNoun,
    schema: Schema,
    {
      fields,
      headers,
      content,
      gate,
    }: { fields: object; headers: Headers; content: Content; gate: Loose<GateOptions> },
  ) {
    const object = this.calling.object("files");
    const query = checkedQuery(schema, fields);
    const { caller } = this.calling;
    const body = bodyOf(content);
    const call = { caller, noun, gated: gated(gate as GateOptions) };
    const requestId = crypto.randomUUID();
    return transfer(object, { call, query, headers, body, requestId });
  }
}

type Loose<T> = { [K in keyof T]: T[K] | undefined };

/** As a query has them. */
function flags(fields: Record<string, unknown>): Record<string, unknown> {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    given.map(([name, value]) => [name, typeof value === "boolean" ? String(value) : value]),
  );
}
