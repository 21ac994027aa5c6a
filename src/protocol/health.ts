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
    /** One sentence for each isolation feature that this machine lacks, with the remedy. */
    missing: z.array(z.string()),
  })
  .meta({ id: "Health" });

export type Health = z.infer<typeof healthSchema>;
