/**
 * Owns the calls and answers about files of a sandbox: one at a time, folders, changes as they happen.
 * Does not own whole trees in one stream (archive.ts).
 */
import { z } from "zod";
import { pathSchema } from "./fields/env.ts";
import { flagSchema } from "./fields/flag.ts";
import { wholeNumber } from "./fields/whole-number.ts";
import { limits } from "./limits.ts";
import { handleSchema } from "./process.ts";

/** Relative paths are below /workspace, or below the folder that the named session stands in. */
const at = { path: pathSchema, session: handleSchema.optional() };

export const modeSchema = z
  .string()
  .regex(/^[0-7]{3,4}$/, "must be an octal mode such as 644")
  .meta({ example: "644" });

export const fileQuerySchema = z.strictObject(at);

export const putQuerySchema = z.strictObject({
  ...at,
  /** Missing folders on the way are made. */
  mkdirs: flagSchema.default(false),
  /** Of a new file; one that is replaced keeps its own unless this is given. */
  mode: modeSchema.optional(),
});

export const removeQuerySchema = z.strictObject({ ...at, recursive: flagSchema.default(false) });

export const listQuerySchema = z.strictObject({
  ...at,
  path: pathSchema.default("."),
  /** 1: the entries of the folder itself. */
  depth: wholeNumber(1, limits.fileListDepthMax).prefault(1),
  limit: wholeNumber(1, limits.fileListPageMax).prefault(1000),
  cursor: z
    .string()
    .max(limits.pathBytesMax * 4)
    .optional(),
});

export const watchQuerySchema = z.strictObject({
  ...at,
  path: pathSchema.default("."),
  recursive: flagSchema.default(true),
});

export const mkdirCallSchema = z
  .strictObject({
    path: pathSchema,
    session: handleSchema.optional(),
    parents: z
      .boolean()
      .default(false)
      .meta({ description: "Missing ones too; being there is fine." }),
    mode: modeSchema.optional(),
  })
  .meta({ id: "MkdirCall" });

export const moveCallSchema = z
  .strictObject({
    from: pathSchema,
    to: pathSchema,
    session: handleSchema.optional(),
    overwrite: z.boolean().default(false),
  })
  .meta({ id: "MoveCall" });

export const fileSchema = z
  .strictObject({
    path: z.string().meta({ description: "Absolute." }),
    kind: z.enum(["file", "folder", "link", "other"]),
    size: z.int(),
    mode: z.string().meta({ example: "644" }),
    uid: z.int(),
    gid: z.int(),
    modifiedAt: z.iso.datetime(),
    etag: z.string().optional().meta({ description: "Of files: changes with every write." }),
    target: z.string().optional().meta({ description: "Of links: what they say." }),
  })
  .meta({ id: "File" });

export const filesSchema = z
  .strictObject({
    files: z.array(
      fileSchema.extend({
        pathBase64: z
          .string()
          .optional()
          .meta({ description: "Of names that are not UTF-8: no call can name those." }),
      }),
    ),
    nextCursor: z.string().nullable(),
  })
  .meta({ id: "Files" });

export const removedSchema = z
  .strictObject({ removed: z.int().meta({ description: "How many files, folders and links." }) })
  .meta({ id: "Removed" });

/** One event of a watch: `event: change`. `overflow` tells that changes were lost: list anew. */
export const fileChangesSchema = z.strictObject({
  changes: z.array(
    z.strictObject({
      path: z.string(),
      what: z.enum(["made", "written", "removed"]),
      kind: z.enum(["file", "folder"]),
    }),
  ),
});

export type FileChange = z.infer<typeof fileChangesSchema>["changes"][number];
export type FileView = z.infer<typeof fileSchema>;
export type FilesPage = z.infer<typeof filesSchema>;
export type Removed = z.infer<typeof removedSchema>;
export type MkdirInput = z.input<typeof mkdirCallSchema>;
export type MkdirCall = z.infer<typeof mkdirCallSchema>;
export type MoveInput = z.input<typeof moveCallSchema>;
export type MoveCall = z.infer<typeof moveCallSchema>;
export type FileQuery = z.input<typeof fileQuerySchema>;
export type PutQuery = z.input<typeof putQuerySchema>;
export type RemoveQuery = z.input<typeof removeQuerySchema>;
export type ListQuery = z.input<typeof listQuerySchema>;
export type WatchQuery = z.input<typeof watchQuerySchema>;
