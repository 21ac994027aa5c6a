/** Serves the verbs that move bytes of files. The bytes pass untouched; a header carries the rest of the call. */
import type { z } from "zod";
import type { Query } from "../../objects/sandbox/agent/agent-client.ts";
import { BerthError } from "../../protocol/errors.ts";
import {
  archiveQuerySchema,
  archiveTypes,
  fileQuerySchema,
  putQuerySchema,
  watchQuerySchema,
} from "../../protocol/file.ts";
import {
  type TransferCall,
  type TransferNoun,
  transferHeader,
  transferHeaders,
  writeTransferCall,
} from "../../protocol/internal/transfer-call.ts";
import { limits } from "../../protocol/limits.ts";
import { verbs } from "../../protocol/verbs.ts";
import { refuseCompressed, tooLarge } from "../http/body.ts";
import type { ApiContext, Handler } from "../http/context.ts";
import { eventStreamType, gatedCaller } from "../http/headers.ts";
import { type SandboxStub, sandboxObject } from "../http/objects.ts";
import { readQuery } from "../http/query.ts";
import { toHead, toHttp } from "../http/responses.ts";
import { invalidField } from "../http/validate.ts";
import { callerFor, verbHandler } from "../http/verb-handler.ts";

export const read: Handler = (c) => download(c, "files", fileQuerySchema);

export const write: Handler = (c) => upload(c, "files", putQuerySchema);

const follow = verbHandler("watchFiles", verbs.watchFiles);

/** HEAD asks about the folder only: a watch that nobody reads would keep its place until the next change. */
export const watch: Handler = async (c) => {
  if (c.req.method !== "HEAD") return follow(c);
  const object = sandboxObject(c.env, c.req.param("id"));
  const { path, session } = readQuery(watchQuerySchema, c.req.url);
  const caller = callerFor(verbs.statFile, c.get("caller"));
  const args = { query: { path, session } };
  const folder = await object.callVerb("statFile", caller, args, c.get("requestId"));
  return toHead(toHttp(folder, verbs.statFile), eventStreamType);
};

export const downloadArchive: Handler = (c) => download(c, "archive", archiveQuerySchema);

export const uploadArchive: Handler = (c) => {
  requireArchiveType(c.req.header("content-type"));
  return upload(c, "archive", archiveQuerySchema);
};

export function requireArchiveType(contentType: string | undefined): void {
  const type = contentType?.split(";")[0]?.trim().toLowerCase() ?? "";
  if (Object.hasOwn(archiveTypes, type)) return;
  const types = Object.keys(archiveTypes).join(", ");
  throw new BerthError("unsupported_type", `The body must be one of ${types}.`, {
    hint: "Send a `Content-Type` that names its format.",
  });
}

function download(c: ApiContext, noun: TransferNoun, schema: z.ZodType): Promise<Response> {
  const object = sandboxObject(c.env, c.req.param("id"));
  const query = readQuery(schema, c.req.url);
  const { headers } = c.req.raw;
  const [caller, requestId] = [c.get("caller"), c.get("requestId")];
  return transfer(object, { call: { caller, noun }, query, headers, requestId });
}

function upload(c: ApiContext, noun: TransferNoun, schema: z.ZodType): Promise<Response> {
  const object = sandboxObject(c.env, c.req.param("id"));
  const gated = gatedCaller(c);
  const query = readQuery(schema, c.req.url, true);
  const { headers, body } = c.req.raw;
  checkBytes(headers);
  if (c.get("isBound")) requireLength(headers);
  const [caller, requestId] = [c.get("caller"), c.get("requestId")];
  return transfer(object, { call: { caller, noun, gated }, query, headers, body, requestId });
}

type Transfer = {
  call: Omit<TransferCall, "session">;
  query: Query;
  headers: Headers;
  body?: ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer> | null;
  requestId: string;
};

export function transfer(
  object: SandboxStub,
  { call, query, headers, body, requestId }: Transfer,
): Promise<Response> {
  const { session } = query;
  const names = call.gated === undefined ? transferHeaders.down : transferHeaders.up;
  const passed = new Headers();
  for (const name of ["expect", ...names]) {
    const value = headers.get(name);
    if (value !== null) passed.set(name, value);
  }
  passed.set("berth-request-id", requestId);
  const folder = typeof session === "string" ? { session } : {};
  passed.set(transferHeader, writeTransferCall({ ...call, ...folder }));
  const fields = Object.entries(query).filter(([, value]) => value !== undefined);
  const search = new URLSearchParams(fields.map(([name, value]) => [name, String(value)]));
  const method = call.gated === undefined ? "GET" : "PUT";
  // Node requires `duplex` for a body that is a stream.
  const sent = body === undefined || body === null ? {} : { body, duplex: "half" };
  const url = `http://object/${call.noun}?${search}`;
  return object.fetch(new Request(url, { method, headers: passed, ...sent }));
}

/** Refuses forms and compressed bodies: they would be written to the file as they are. */
function checkBytes(headers: Headers): void {
  const bytes = headers.get("content-length");
  if (bytes !== null) checkSize(Number(bytes));
  const type = headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (type === "multipart/form-data") {
    throw new BerthError("unsupported_type", "The body must be the bytes themselves, not a form.", {
      hint: "With curl: `-T <file>` or `--data-binary @<file>`.",
    });
  }
  refuseCompressed(headers);
}

/**
 * From another Worker, by its binding: there a stream without a length that breaks off arrives as one that ends.
 * Over the network it arrives as broken.
 */
function requireLength(headers: Headers): void {
  if (headers.has("content-length")) return;
  throw new BerthError("bad_request", "Content-Length: must say how long the body is", {
    hint: "Send bytes, or pipe the stream through a FixedLengthStream.",
    facts: { field: "Content-Length" },
  });
}

export function checkSize(bytes: number): void {
  if (!Number.isSafeInteger(bytes) || bytes < 0)
    throw invalidField("bytes", "must be a whole number");
  if (bytes > limits.fileBytesMax) throw tooLarge(limits.fileBytesMax);
}
