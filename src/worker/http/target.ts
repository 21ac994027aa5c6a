/** Checks the process, session, terminal, checkpoint or port that a path names. */
import { checkpointIdPattern, checkpointIdSchema } from "../../protocol/checkpoint.ts";
import { BerthError } from "../../protocol/errors.ts";
import { callIdSchema } from "../../protocol/fields/id.ts";
import { pathPortSchema } from "../../protocol/port.ts";
import { handleSchema } from "../../protocol/process.ts";
import { validateField } from "./validate.ts";

export function validateTarget(name: string, sandbox: string, value: unknown): string | number {
  if (name === "checkpoint") return requireCheckpointOf(sandbox, value);
  if (name === "call") return validateField(name, callIdSchema, value);
  return name === "port"
    ? validateField(name, pathPortSchema, value)
    : validateField(name, handleSchema, value);
}

function requireCheckpointOf(sandbox: string, value: unknown): string {
  const id = validateField("checkpoint", checkpointIdSchema, value);
  if (sandboxOf(id) === sandbox) return id;
  throw new BerthError("not_found", "This sandbox has no such checkpoint.", {
    hint: "The id of a checkpoint starts with the id of its sandbox.",
  });
}

export function sandboxOf(checkpoint: string): string {
  return checkpointIdPattern.exec(checkpoint)?.[1] ?? "";
}
