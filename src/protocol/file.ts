/** Schemas of files, folders, archives (whole trees in one tar stream) and clones of git repositories. */
import { z } from "zod";
import { component } from "./fields/component.ts";
import { kernelText, pathSchema } from "./fields/env.ts";
import { flagSchema, nextCursor, pageLimit, queryNumber, wholeNumber } from "./fields/scalar.ts";
import { limits } from "./limits.ts";
import { handleSchema } from "./process.ts";

export const inSession = handleSchema
  .optional()
  .describe("Relative paths are below the current folder of this session, not below /workspace.");

const pathFields = {
  path: pathSchema.describe("Absolute, or below /workspace."),
  session: inSession,
};

export const modeSchema = z
  .string()
  .regex(/^[0-7]{3,4}$/, "must be an octal mode such as 644")
  .meta({ example: "644" });

export const fileQuerySchema = z.strictObject(pathFields);

export const putQuerySchema = z.strictObject({
  ...pathFields,
  mkdirs: flagSchema.default(false).describe("Creates missing parents."),
  mode: modeSchema
    .optional()
    .describe("The mode of a new file. A replaced file keeps its mode unless this is given."),
});

export const removeQuerySchema = z.strictObject({
  ...pathFields,
  recursive: flagSchema.default(false).describe("Also removes a folder that is not empty."),
});

export const listQuerySchema = z.strictObject({
  ...pathFields,
  path: pathFields.path.default("."),
  depth: queryNumber(1, limits.fileListDepthMax)
    .prefault(1)
    .describe("1: only the entries of the folder itself."),
  limit: pageLimit("Entries", limits.fileListPageMax, 1000),
  cursor: z
    .string()
    .max(limits.pathBytesMax * 4)
    .optional()
    .describe(nextCursor),
});

export const watchQuerySchema = z.strictObject({
  ...pathFields,
  path: pathFields.path.default("."),
  recursive: flagSchema.default(true).describe("Also watches the folders below it."),
});

export const mkdirCallSchema = component("MkdirCall", {
  ...pathFields,
  parents: z
    .boolean()
    .default(false)
    .describe("Creates missing parents, and accepts a folder that exists."),
  mode: modeSchema.optional(),
});

export const moveCallSchema = component("MoveCall", {
  from: pathSchema,
  to: pathSchema,
  session: inSession,
  overwrite: z.boolean().default(false).describe("Replaces an existing file at `to`."),
});

export const fileSchema = component("File", {
  path: z.string().describe("Absolute path."),
  kind: z
    .enum(["file", "folder", "link", "other"])
    .describe("What is at the path; a link is described itself."),
  size: z.int().describe("Bytes."),
  mode: z.string().meta({ description: "Octal, such as `644`.", example: "644" }),
  uid: z.int().describe("The number of its owner."),
  gid: z.int().describe("The number of its group."),
  modifiedAt: z.iso.datetime().describe("ISO 8601."),
  etag: z.string().optional().describe("Only for files: changes with every write."),
  target: z.string().optional().describe("Only for links: the path that the link contains."),
});

export const filesSchema = component("Files", {
  files: z.array(
    fileSchema.extend({
      pathBase64: z
        .string()
        .optional()
        .describe("The bytes of a path that is not UTF-8: no call can address such a file."),
    }),
  ),
  nextCursor: z.string().nullable(),
});

export const removedSchema = component("Removed", {
  removed: z.int().describe("Number of files, folders and links that were removed."),
});

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
export type MkdirCall = z.infer<typeof mkdirCallSchema>;
export type MoveCall = z.infer<typeof moveCallSchema>;

/** Compression by content type: `Accept` of a download, `Content-Type` of an upload. */
export const archiveTypes = {
  "application/x-tar": "none",
  "application/gzip": "gzip",
  "application/zstd": "zstd",
} as const;

export type ArchiveType = keyof typeof archiveTypes;

export const archiveQuerySchema = z.strictObject({
  path: pathFields.path.default("."),
  session: inSession,
});

export const unpackedSchema = component("Unpacked", {
  entries: z.int().describe("How many files, folders and links were unpacked."),
  bytes: z.int().describe("Unpacked size of all files."),
});

export type Unpacked = z.infer<typeof unpackedSchema>;

export const cloneCallSchema = component("CloneCall", {
  url: kernelText(limits.gitUrlBytesMax)
    .refine(
      (url) => /^(https?|ssh|git|file):\/\/[^\s]+$|^[\w.-]+@[\w.-]+:[^\s]+$/.test(url),
      "must be an https, http, ssh, git or file address, or user@host:path",
    )
    .describe("The address of the repository."),
  branch: kernelText(limits.gitRefBytesMax)
    .refine((ref) => /^(?!-)[^\s~^:?*[\\]+$/.test(ref), "must be the name of a branch or tag")
    .optional()
    .describe("A branch or tag; the remote's default branch by default."),
  depth: wholeNumber(1, 1_000_000).optional().describe("Commits to fetch; all by default."),
  dir: pathSchema.optional().describe("The new folder; the name of the repository by default."),
  session: inSession,
  credentials: z
    .strictObject({
      username: kernelText(limits.gitSecretBytesMax),
      password: kernelText(limits.gitSecretBytesMax),
    })
    .optional()
    .describe("For this clone only; neither stored in the sandbox nor shown."),
  timeoutMs: wholeNumber(1000, limits.execTimeoutMaxMs)
    .default(limits.gitCloneTimeoutMs)
    .describe("Milliseconds until the clone is given up."),
});

/** The data of `event: progress`. */
export const cloneProgressSchema = z.strictObject({
  phase: z.string().meta({ example: "Receiving objects" }),
  percent: z.int().nullable(),
});

/** `event: done`. A failure after the first byte is `event: error` with an error body. */
export const clonedSchema = component("Cloned", {
  dir: z.string().describe("The folder of the clone, absolute."),
  commit: z
    .string()
    .nullable()
    .describe("The commit that is checked out; null in an empty repository."),
  branch: z
    .string()
    .nullable()
    .describe("The branch that is checked out; null with a detached head."),
});

export type CloneInput = z.input<typeof cloneCallSchema>;
export type CloneCall = z.infer<typeof cloneCallSchema>;
export type CloneProgress = z.infer<typeof cloneProgressSchema>;
export type Cloned = z.infer<typeof clonedSchema>;
