/**
 * The schema of `GET /health`.
 */
import { z } from "zod";
import { isolationSchema } from "./fields/isolation.ts";

export const healthSchema = z
  .strictObject({
    status: z.enum(["ok", "degraded"]),
    version: z.string(),
    engine: z.enum(["embedded", "platform"]),
    isolation: isolationSchema.optional(),
    missing: z
      .array(z.string())
      .describe(
        "One sentence for each isolation feature that this machine lacks, with the remedy.",
      ),
  })
  .meta({ id: "Health" });

export type Health = z.infer<typeof healthSchema>;
