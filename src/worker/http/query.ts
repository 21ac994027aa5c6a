/** Reads queries: UTF-8, each field once, and only fields that the verb has. */
import type { z } from "zod";
import type { Query } from "../../objects/sandbox/agent/agent-client.ts";
import { type VerbName, type VerbRow, verbs } from "../../protocol/verbs.ts";
import { invalidField, validate } from "./validate.ts";

/** A filter may be given several times, once for each key. */
const repeatable: Partial<Record<VerbName, string>> = { listSandboxes: "metadata" };

/** For every request, before its handler. Values are checked by the schema of the row. */
export function checkQuery(name: VerbName, search: string): void {
  if (search.length < 2) return;
  const { query, gated }: VerbRow = verbs[name];
  const seen = new Set<string>();
  for (const [field] of fieldsOf(search)) {
    if (query === undefined && !(gated === true && field === "wake")) {
      throw invalidField(field, "is not a field of this call");
    }
    if (seen.has(field) && repeatable[name] !== field) {
      throw invalidField(field, "must be given once");
    }
    seen.add(field);
  }
}

/** The checked query. Every gated call has `wake` besides the fields of its row: headers.ts reads it. */
export function readQuery<Schema extends z.ZodType>(
  schema: Schema,
  url: string,
  isGated = false,
): z.output<Schema> & Query {
  const start = url.indexOf("?");
  const fields = Object.fromEntries(start < 0 ? [] : fieldsOf(url.slice(start)));
  if (isGated) delete fields.wake;
  return validate(schema, fields) as z.output<Schema> & Query;
}

/** Bytes that are not UTF-8 are refused, not replaced: no name can mean them. */
function fieldsOf(search: string): [name: string, value: string][] {
  const parts = search.replace(/^\?/, "").split("&");
  return parts
    .filter((part) => part !== "")
    .map((part) => {
      const equals = part.indexOf("=");
      const name = decode(equals < 0 ? part : part.slice(0, equals), "query");
      return [name, equals < 0 ? "" : decode(part.slice(equals + 1), name)];
    });
}

function decode(text: string, field: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw invalidField(field, "must be UTF-8, percent-encoded");
  }
}
