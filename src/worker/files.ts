/**
 * Owns the way of calls on files from a route to the object, and of its answer back.
 */
import type { Context } from "hono";
import type { z } from "zod";
import type { FileLook, FileWork } from "../objects/sandbox/dispatch/files-call.ts";
import type { Query } from "../objects/sandbox/dispatch/work-call.ts";
import type { TransferNoun } from "../protocol/internal/transfer-call.ts";
import type { Door } from "./app.ts";
import { fileQuery } from "./file-queries.ts";
import { objectOf } from "./http/operations.ts";
import { gatedCaller } from "./http/query.ts";
import { answered } from "./http/reply.ts";
import { checkBytes, demandLength, transfer } from "./special/transfer.ts";

type Of = Context<Door, "/:id">;
type QuerySchema = z.ZodObject<z.ZodRawShape>;

export async function lookAtFiles(
  c: Of,
  look: FileLook["look"],
  schema: QuerySchema,
): Promise<Response> {
  const object = objectOf(c.env, c.req.param("id"));
  const query = fileQuery(schema, searchOf(c));
  return answered(await object.lookAtFiles(c.get("caller"), { look, query }, c.get("requestId")));
}

export async function workOnFiles(
  c: Of,
  read: () => FileWork | Promise<FileWork>,
): Promise<Response> {
  const object = objectOf(c.env, c.req.param("id"));
  const gated = gatedCaller(c);
  return answered(
    await object.workOnFiles(c.get("caller"), gated, await read(), c.get("requestId")),
  );
}

export function gatedQuery(c: Of, schema: QuerySchema): Query {
  return fileQuery(schema, searchOf(c), true);
}

export function download(c: Of, noun: TransferNoun, schema: QuerySchema): Promise<Response> {
  const object = objectOf(c.env, c.req.param("id"));
  const query = fileQuery(schema, searchOf(c));
  const { headers } = c.req.raw;
  const [caller, requestId] = [c.get("caller"), c.get("requestId")];
  return transfer(object, { call: { caller, noun }, query, headers, requestId });
}

export function upload(c: Of, noun: TransferNoun, schema: QuerySchema): Promise<Response> {
  const object = objectOf(c.env, c.req.param("id"));
  const gated = gatedCaller(c);
  const query = gatedQuery(c, schema);
  const { headers, body } = c.req.raw;
  checkBytes(headers);
  if (c.get("isBound")) demandLength(headers);
  const [caller, requestId] = [c.get("caller"), c.get("requestId")];
  return transfer(object, { call: { caller, noun, gated }, query, headers, body, requestId });
}

function searchOf(c: Of): string {
  return new URL(c.req.url).search;
}
