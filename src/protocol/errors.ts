/**
 * Owns the schema of what the wire carries for every refusal and failure, and brings the table of codes along.
 * Does not own the table itself: see error-codes.ts.
 */
import { z } from "zod";
import { type ErrorCode, errors } from "./error-codes.ts";

export * from "./error-codes.ts";

/** What the wire carries for every refusal and failure. */
export const errorBodySchema = z
  .object({
    error: z.looseObject({
      code: z.enum(Object.keys(errors) as [ErrorCode, ...ErrorCode[]]),
      message: z.string(),
      hint: z.string().optional(),
      retryable: z.boolean(),
    }),
    requestId: z.string(),
  })
  .meta({ id: "Error" });
