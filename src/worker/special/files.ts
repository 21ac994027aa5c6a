/**
 * HTTP handlers of the verbs that move bytes of files: the bytes are passed on untouched.
 */
import type { z } from "zod";
import { BerthError } from "../../protocol/errors.ts";
import {
  archiveQuerySchema,
  archiveTypes,
  fileQuerySchema,
  putQuerySchema,
} from "../../protocol/file.ts";
import type { TransferNoun } from "../../protocol/internal/transfer-call.ts";
import type { ApiContext, Handler } from "../http/context.ts";
import { gatedCaller } from "../http/headers.ts";
import { sandboxObject } from "../http/objects.ts";
import { readQuery } from "../http/query.ts";
import { checkBytes, requireLength, transfer } from "./transfer.ts";

export const read: Handler = (c) => download(c, "files", fileQuerySchema);

export const write: Handler = (c) => upload(c, "files", putQuerySchema);

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
