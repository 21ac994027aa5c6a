/**
 * Whole trees in one stream: tar, plain or compressed, as the content type says.
 */
import { z } from "zod";
import { pathSchema } from "./fields/env.ts";
import { handleSchema } from "./process.ts";

/** Compression by content type: `Accept` of a download, `Content-Type` of an upload. */
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
    /** How many files, folders and links were unpacked. */
    entries: z.int(),
    /** Unpacked size of all files. */
    bytes: z.int().meta({ description: "Unpacked size of all files." }),
  })
  .meta({ id: "Unpacked" });

export type Unpacked = z.infer<typeof unpackedSchema>;
