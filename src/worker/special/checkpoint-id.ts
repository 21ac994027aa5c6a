/**
 * Owns what the id of a checkpoint says: whose it is. One of another sandbox is not found in this one.
 */
import { checkpointIdPattern, checkpointIdSchema } from "../../protocol/checkpoint.ts";
import { BerthError } from "../../protocol/errors.ts";
import { invalidField } from "../http/validate.ts";

export function requireCheckpointOf(sandbox: string, value: unknown): string {
  const id = checkpointIdSchema.safeParse(value);
  if (!id.success) throw invalidField("checkpoint", "must be the id of a checkpoint");
  if (sandboxOf(id.data) === sandbox) return id.data;
  throw new BerthError("not_found", "There is no such checkpoint of this sandbox.", {
    hint: "Its id begins with the sandbox's own.",
  });
}

export function sandboxOf(checkpoint: string): string {
  return checkpointIdPattern.exec(checkpoint)?.[1] ?? "";
}
