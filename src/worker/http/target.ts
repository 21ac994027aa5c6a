/**
 * Checks the process, session, terminal, checkpoint or port that a path names.
 */
import { pathPortSchema } from "../../protocol/port.ts";
import { handleSchema } from "../../protocol/process.ts";
import { requireCheckpointOf } from "../special/checkpoint-id.ts";
import { invalidField } from "./validate.ts";

export function validateTarget(name: string, sandbox: string, value: unknown): string | number {
  if (name === "checkpoint") return requireCheckpointOf(sandbox, value);
  if (name === "port") {
    const port = pathPortSchema.safeParse(value);
    if (port.success) return port.data;
    throw invalidField("port", "must be a whole number from 1 to 65535");
  }
  const handle = handleSchema.safeParse(value);
  if (handle.success) return handle.data;
  throw invalidField(name, handle.error.issues[0]?.message ?? "is not valid");
}
