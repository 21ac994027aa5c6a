/**
 * Owns the form of whole trees in one stream: tar, plain or compressed, told by the content type.
 */
import { z } from "zod";
import { pathSchema } from "./fields/env.ts";
import { handleSchema } from "./process.ts";

/** In `Accept` of a download, in `Content-Type` of an upload. */
export const archiveTypes = {
  "application/x-tar": "none",
  "application/gzip": "gzip",
  "application/zstd": "zstd",
} as const;

export type ArchiveType = keyof typeof archiveTypes;

export const archiveQuerySchema = z.strictObject({
  path: pathSchema.default("."),
  session: handleSchema.optional(),
});

export const unpackedSchema = z
  .strictObject({
    entries: z.int(),
    bytes: z.int().meta({ description: "Of contents, unpacked." }),
  })
  .meta({ id: "Unpacked" });

export type ArchiveQuery = z.input<typeof archiveQuerySchema>;
export type Unpacked = z.infer<typeof unpackedSchema>;
