/**
 * Owns checking the queries of files, and writing them for the agent: each field once, UTF-8, in normal form.
 */
import type { z } from "zod";
import type { Query } from "../objects/sandbox/dispatch/work-call.ts";
import { parseCall } from "./http/body.ts";
import { bad } from "./http/query.ts";
import { fieldsOf } from "./http/query-params.ts";

type QuerySchema = z.ZodObject<z.ZodRawShape>;

/** What every gated call may say is read elsewhere. */
export function fileQuery(schema: QuerySchema, search: string, isGated = false): Query {
  const fields: Record<string, string> = {};
  for (const [name, value] of fieldsOf(search)) {
    if (isGated && name === "wake") continue;
    if (!Object.hasOwn(schema.shape, name)) throw bad(name, "is not a field of this call");
    if (Object.hasOwn(fields, name)) throw bad(name, "must be given once");
    fields[name] = value;
  }
  return checkedQuery(schema, fields);
}

export function checkedQuery(schema: z.ZodType, fields: unknown): Query {
  return parseCall(schema, fields) as Query;
}
