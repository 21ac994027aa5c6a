/**
 * Schemas of single files, folders and changes. See archive.ts for whole trees.
 */
import { z } from "zod";
import { pathSchema } from "./fields/env.ts";
import { flagSchema } from "./fields/flag.ts";
import { wholeNumber } from "./fields/whole-number.ts";
import { limits } from "./limits.ts";
import { handleSchema } from "./process.ts";

/** Relative paths are below /workspace, or below the current folder of the session. */
const pathFields = { path: pathSchema, session: handleSchema.optional() };

export const modeSchema = z
  .string()
  .regex(/^[0-7]{3,4}$/, "must be an octal mode such as 644")
  .meta({ example: "644" });

export const fileQuerySchema = z.strictObject(pathFields);

export const putQuerySchema = z.strictObject({
  ...pathFields,
  /** Creates missing parents. */
  mkdirs: flagSchema.default(false),
  /** The mode of a new file. A replaced file keeps its mode unless this is given. */
  mode: modeSchema.optional(),
});

export const removeQuerySchema = z.strictObject({
  ...pathFields,
  recursive: flagSchema.default(false),
});

export const listQuerySchema = z.strictObject({
  ...pathFields,
  path: pathSchema.default("."),
  /** 1: only the entries of the folder itself. */
  depth: wholeNumber(1, limits.fileListDepthMax).prefault(1),
  /** Entries per page; 1,000 by default, at most 5,000. */
  limit: wholeNumber(1, limits.fileListPageMax).prefault(1000),
  cursor: z
    .string()
    .max(limits.pathBytesMax * 4)
    .optional(),
});

export const watchQuerySchema = z.strictObject({
  ...pathFields,
  path: pathSchema.default("."),
  recursive: flagSchema.default(true),
});

export const mkdirCallSchema = z
  .strictObject({
    path: pathSchema,
    session: handleSchema.optional(),
    /** Creates missing parents, and accepts a folder that exists; false by default. */
    parents: z
      .boolean()
      .default(false)
      .meta({ description: "Also creates missing parents; an existing folder is no error." }),
    mode: modeSchema.optional(),
  })
  .meta({ id: "MkdirCall" });

export const moveCallSchema = z
  .strictObject({
    from: pathSchema,
    to: pathSchema,
    session: handleSchema.optional(),
    /** Replaces an existing file at `to`; false by default. */
    overwrite: z.boolean().default(false),
  })
  .meta({ id: "MoveCall" });

export const fileSchema = z
  .strictObject({
    /** Absolute path. */
    path: z.string().meta({ description: "Absolute path." }),
    kind: z.enum(["file", "folder", "link", "other"]),
    /** Bytes. */
    size: z.int(),
    /** Octal, such as `644`. */
    mode: z.string().meta({ example: "644" }),
    uid: z.int(),
    gid: z.int(),
    modifiedAt: z.iso.datetime(),
    /** Only for files: changes with every write. */
    etag: z.string().optional().meta({ description: "Only for files: changes with every write." }),
    /** Only for links: the path that the link contains. */
    target: z
      .string()
      .optional()
      .meta({ description: "Only for links: the path that the link contains." }),
  })
  .meta({ id: "File" });

export const filesSchema = z
  .strictObject({
    files: z.array(
      fileSchema.extend({
        /** Only names that are not UTF-8: the bytes of the path. No call can address such a file. */
        pathBase64: z
          .string()
          .optional()
          .meta({ description: "Only for names that are not UTF-8; no call can name them." }),
      }),
    ),
    nextCursor: z.string().nullable(),
  })
  .meta({ id: "Files" });

export const removedSchema = z
  .strictObject({
    /** Number of files, folders and links that were removed. */
    removed: z.int().meta({ description: "Number of files, folders and links that were removed." }),
  })
  .meta({ id: "Removed" });

/** The data of `event: change` of a watch. After `event: overflow` changes were lost: list the folder again. */
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
export type ListQuery = Partial<z.infer<typeof listQuerySchema>>;
export type WatchQuery = Partial<z.infer<typeof watchQuerySchema>>;
