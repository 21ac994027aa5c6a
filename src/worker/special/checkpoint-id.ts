/**
 * Reads ids of checkpoints: an id names its sandbox, and a checkpoint of another sandbox is not found.
 */
import { checkpointIdPattern, checkpointIdSchema } from "../../protocol/checkpoint.ts";
import { BerthError } from "../../protocol/errors.ts";
import { invalidField } from "../http/validate.ts";

export function requireCheckpointOf(sandbox: string, value: unknown): string {
  const id = checkpointIdSchema.safeParse(value);
  if (!id.success) throw invalidField("checkpoint", "must be the id of a checkpoint");
  if (sandboxOf(id.data) === sandbox) return id.data;
  throw new BerthError("not_found", "This sandbox has no such checkpoint.", {
    hint: "The id of a checkpoint starts with the id of its sandbox.",
  });
}

export function sandboxOf(checkpoint: string): string {
  return checkpointIdPattern.exec(checkpoint)?.[1] ?? "";
}
