/** Schemas of images: what was pulled or imported on one machine, and what an image says about itself. */
import { z } from "zod";
import { component } from "./fields/component.ts";
import {
  digestPattern,
  imageNameSchema,
  importNameSchema,
  pullReferenceSchema,
} from "./fields/image-reference.ts";
import { wholeNumber } from "./fields/scalar.ts";
import { limits } from "./limits.ts";

export const pullCallSchema = component("PullCall", {
  reference: pullReferenceSchema,
  waitMs: wholeNumber(0, limits.waitMaxMs)
    .default(0)
    .describe("Milliseconds that this call may wait for the end of the pull."),
});

export const imageQuerySchema = z.strictObject({ reference: imageNameSchema });

export const importQuerySchema = z.strictObject({ name: importNameSchema });

export const imageFactsSchema = z.strictObject({
  env: z.record(z.string(), z.string()),
  cwd: z.string().optional(),
  user: z.string().optional(),
  entrypoint: z.array(z.string()).optional(),
  cmd: z.array(z.string()).optional(),
});

export const imageSchema = component("Image", {
  reference: z.string(),
  state: z.enum(["pulling", "ready", "failed"]),
  reason: z.string().optional().describe("Why the pull failed."),
  digest: z.string().regex(digestPattern).optional().describe("Of its manifest."),
  pulledAt: z.iso.datetime().optional(),
  bytes: z.int().describe("While it is pulled: that have arrived. Then: its unpacked layers."),
  bytesTotal: z.int().optional().describe("While it is pulled: of all layers that are needed."),
  layers: z.int().optional(),
  inUse: z.int().optional().describe("Sandboxes and checkpoints that stand on it."),
  facts: imageFactsSchema.optional().describe("`env` and `cwd` are defaults of its sandboxes."),
});

export const imagesSchema = component("Images", {
  images: z.array(imageSchema),
  nextCursor: z.null(),
});

export type PullCall = z.infer<typeof pullCallSchema>;
export type Image = z.infer<typeof imageSchema>;
export type Images = z.infer<typeof imagesSchema>;
export type ImageFacts = z.infer<typeof imageFactsSchema>;
