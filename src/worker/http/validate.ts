/**
 * Checks the parts of a call against their schemas. The error names the first field that does not fit.
 */
import type { z } from "zod";
import { BerthError } from "../../protocol/errors.ts";

export function validate<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
): z.infer<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const unknownFields = issue?.code === "unrecognized_keys" ? issue.keys.slice(0, 1) : [];
  const field = [...(issue?.path ?? []), ...unknownFields].join(".") || "body";
  const message =
    issue?.code === "unrecognized_keys"
      ? "is not a field of this call"
      : (issue?.message ?? "is not valid");
  throw new BerthError("bad_request", `${field}: ${message}`, {
    hint: "All calls are described in /openapi.json.",
    facts: { field },
  });
}

export function invalidField(field: string, message: string): BerthError {
  return new BerthError("bad_request", `${field}: ${message}`, { facts: { field } });
}
