/**
 * Schemas of checkpoints: saved file trees of a sandbox. An id names its sandbox, so a fork needs only the id.
 */
import { z } from "zod";
import { limits } from "./limits.ts";

export const checkpointIdPattern = /^([a-z][a-z0-9]{23})\.([a-z0-9]{12})$/;

export const checkpointIdSchema = z
  .string()
  .regex(checkpointIdPattern, "must be the id of a checkpoint")
  .meta({ example: "k3v9q2m7x1c5b8n4tq0w8e2r.a1b2c3d4e5f6" });

export const checkpointCallSchema = z
  .strictObject({
    name: z
      .string()
      .min(1)
      .max(limits.checkpointNameCharsMax)
      .regex(/^[^\p{Cc}]*$/u, "must not contain control characters")
      .refine((text) => text.isWellFormed(), "must be well-formed Unicode")
      .optional(),
  })
  .meta({ id: "CheckpointCall" });

export const checkpointSchema = z
  .strictObject({
    id: checkpointIdSchema,
    name: z.string().optional(),
    createdAt: z.iso.datetime(),
    expiresAt: z.iso
      .datetime()
      .nullable()
      .describe("When it is removed; null: together with its sandbox."),
    bytes: z.int().describe("Size on disk, if known."),
    tookMs: z.int().describe("Milliseconds that saving it took."),
    inUse: z
      .enum(["pause", "plan"])
      .optional()
      .describe("What still needs it; it cannot be removed until then."),
  })
  .meta({ id: "Checkpoint" });

export const checkpointsSchema = z
  .strictObject({ checkpoints: z.array(checkpointSchema), nextCursor: z.null() })
  .meta({ id: "Checkpoints" });

export type CheckpointInput = z.input<typeof checkpointCallSchema>;
export type CheckpointCall = z.infer<typeof checkpointCallSchema>;
export type Checkpoint = z.infer<typeof checkpointSchema>;
export type Checkpoints = z.infer<typeof checkpointsSchema>;
