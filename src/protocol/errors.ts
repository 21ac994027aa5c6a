/** The schema of error bodies, together with the table of codes (error-codes.ts). */
import { z } from "zod";
import { type ErrorCode, errors } from "./error-codes.ts";

export * from "./error-codes.ts";

/** The body of every error response. */
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
