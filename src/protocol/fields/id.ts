/**
 * Owns the form of a sandbox id and of an incarnation.
 * Does not own the keyed check inside an id: only the door has the secret.
 */
import { z } from "zod";

/** A letter, then letters and digits: 16 drawn at random, 8 a keyed check of those. */
export const sandboxIdPattern = /^[a-z][a-z0-9]{23}$/;
export const sandboxIdRandomChars = 16;
export const sandboxIdCheckChars = 8;

/** `<start id>.<what the agent drew at boot>`: one life of the agent. */
export const incarnationPattern = /^[a-z0-9]{16}\.[a-z0-9]{16}$/;

export const sandboxIdSchema = z
  .string()
  .regex(sandboxIdPattern)
  .meta({ id: "SandboxId", example: "k3v9q2m7x1c5b8n4tq0w8e2r" });

/** The start id that an incarnation belongs to. */
export function startIdOf(incarnation: string): string {
  return incarnation.slice(0, incarnation.indexOf("."));
}
