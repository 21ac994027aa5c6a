/** The form of sandbox ids and idempotency keys. Only the Worker has the secret for the MAC in an id. */
import { z } from "zod";
import { sandboxIdPattern } from "./forms.ts";

export const sandboxIdRandomChars = 16;
export const sandboxIdCheckChars = 8;

export const sandboxIdSchema = z
  .string()
  .regex(sandboxIdPattern)
  .meta({ id: "SandboxId", example: "k3v9q2m7x1c5b8n4tq0w8e2r" });

/** Tells the tenants of all installations apart, and says nothing else about them. */
export const tenantIdSchema = z
  .string()
  .regex(/^[A-Za-z0-9_-]{16}$/)
  .describe("An id of this tenant on this installation: the same for all its keys.");

export const callIdHeader = "berth-call-id";

/** Chosen by the caller of a command, and a secret of it. */
export const callIdSchema = z
  .string()
  .regex(/^[A-Za-z0-9_-]{16,64}$/, "must be 16 to 64 letters, digits, _ or -");

export const idempotencyHeader = "idempotency-key";

export const idempotencyKeySchema = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, "must be 1 to 255 printable characters without spaces");
