/**
 * The form of idempotency keys.
 */
import { z } from "zod";

export const idempotencyHeader = "idempotency-key";

export const idempotencyKeySchema = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, "must be 1 to 255 printable characters without spaces");
