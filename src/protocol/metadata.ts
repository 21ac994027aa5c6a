/** Schemas of metadata: keys, values and their limits. core/metadata applies a patch and checks the merged result. */
import { z } from "zod";
import { component } from "./fields/component.ts";
import { utf8Bytes } from "./fields/env.ts";
import { limits } from "./limits.ts";

const keySchema = z
  .string()
  .regex(/^[A-Za-z0-9._:/-]+$/, "must be letters, digits and . _ : / -")
  .refine(
    (key) => key.length <= limits.metadataKeyBytesMax,
    `must be at most ${limits.metadataKeyBytesMax} bytes`,
  )
  .refine((key) => key !== "__proto__", "this name cannot be used");

const valueSchema = z
  .string()
  .refine((value) => value.isWellFormed(), "must be well-formed Unicode")
  .refine(
    (value) => utf8Bytes(value) <= limits.metadataValueBytesMax,
    `must be at most ${limits.metadataValueBytesMax} bytes of UTF-8`,
  );

/** `null` and the empty string remove a key; other keys stay. */
export const metadataPatchSchema = z.record(keySchema, valueSchema.nullable()).meta({
  id: "MetadataPatch",
  description: "Your own keys and values; null removes a key.",
  example: { owner: "ci", stage: null },
});

export const metadataSchema = z
  .record(keySchema, z.string())
  .meta({ id: "Metadata", description: "Your own keys and values.", example: { owner: "ci" } });

export const metadataAnswerSchema = component("MetadataAnswer", {
  metadata: metadataSchema,
  version: z.int().describe("Grows with each change; `ifMatch` compares it."),
  listed: z.literal(false).optional().describe("The lists do not show this change yet."),
});

export type Metadata = z.infer<typeof metadataSchema>;
export type MetadataPatch = z.infer<typeof metadataPatchSchema>;
export type MetadataAnswer = z.infer<typeof metadataAnswerSchema>;
