/** Schemas of checkpoints (saved file trees of a sandbox), and of the difference between two of them. */
import { z } from "zod";
import { component } from "./fields/component.ts";
import { plainText } from "./fields/scalar.ts";
import { limits } from "./limits.ts";

export const checkpointIdPattern = /^([a-z][a-z0-9]{23})\.([a-z0-9]{12})$/;

export const checkpointIdSchema = z
  .string()
  .regex(checkpointIdPattern, "must be the id of a checkpoint")
  .meta({
    description: "Identifies the checkpoint, also in `create({ from })`.",
    example: "k3v9q2m7x1c5b8n4tq0w8e2r.a1b2c3d4e5f6",
  });

export const checkpointCallSchema = component("CheckpointCall", {
  name: plainText(limits.checkpointNameCharsMax).min(1).optional(),
});

export const checkpointSchema = component("Checkpoint", {
  id: checkpointIdSchema,
  name: z.string().optional().describe("The name given by its creator."),
  createdAt: z.iso.datetime().describe("ISO 8601."),
  expiresAt: z.iso
    .datetime()
    .nullable()
    .describe("When it is removed; null: together with its sandbox."),
  bytes: z.int().describe("Size on disk, if known."),
  tookMs: z.int().describe("Milliseconds that saving it took."),
  automatic: z.literal(true).optional().describe("Saved because of `checkpointEveryMs`."),
  inUse: z
    .enum(["pause", "plan", "template"])
    .optional()
    .describe("What still needs it; it cannot be removed until then."),
});

export const checkpointsSchema = component("Checkpoints", {
  checkpoints: z.array(checkpointSchema),
  nextCursor: z.null(),
});

export type CheckpointCall = z.infer<typeof checkpointCallSchema>;
export type Checkpoint = z.infer<typeof checkpointSchema>;
export type Checkpoints = z.infer<typeof checkpointsSchema>;

const pathsSchema = z.array(z.string());

/**
 * Paths below /workspace. A folder ends with a slash, and is listed itself only if it is empty or if its mode, owner or
 * attributes changed; the folder /workspace is `./`. Bytes of names that are not printable UTF-8 are written as `\xNN`,
 * and a backslash as `\\`, so each path has exactly one form.
 */
export const changesSchema = component("Changes", {
  added: pathsSchema.describe("The lists are cut at a limit; `counts` has the full numbers."),
  modified: pathsSchema,
  deleted: pathsSchema,
  counts: z
    .strictObject({ added: z.int(), modified: z.int(), deleted: z.int() })
    .describe("All changes, including those beyond the limit of the lists."),
  bytes: z.int().describe("Size of the files that were added or modified."),
});

export type Changes = z.infer<typeof changesSchema>;

/** Names of saved trees. Without `from`, `to` is compared with the empty workspace. */
export type ChangesCall = { from?: string | undefined; to: string; listMax: number };
