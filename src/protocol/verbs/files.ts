/**
 * Rows of the verbs on files, archives and git. Reads never start a container; without one they are refused.
 */
import type { ErrorCode } from "../error-codes.ts";
import { limits } from "../limits.ts";
import { response, type Schemas, sandboxPath, type VerbRow } from "./row.ts";

const all = `${sandboxPath}/files` as const;
const archive = `${sandboxPath}/archive` as const;

const pathErrors: ErrorCode[] = [
  ...(["stale_handle", "not_running", "start_failed"] as const),
  ...(["file_not_found", "file_forbidden", "not_a_folder"] as const),
];
const fileErrors: ErrorCode[] = [...pathErrors, "not_a_file"];
const writeErrors: ErrorCode[] = [...fileErrors, "disk_full", "too_many"];

const relativePaths =
  "A relative path is below /workspace, or below the current folder of `session`.";

export const fileRows = (schemas: Schemas) =>
  ({
    readFile: {
      method: "GET",
      path: all,
      summary: "Read a file, or one range of it",
      description: `The headers \`Range\`, \`If-Range\` and \`If-None-Match\` are supported. ${relativePaths}`,
      example: { query: { path: "app/log.txt" } },
      right: "files",
      agent: true,
      query: schemas.fileQuerySchema,
      responses: {
        200: response("stream", "The whole file."),
        206: response("stream", "The range that `Content-Range` names."),
      },
      errors: [...fileErrors, "bad_range"],
    },
    writeFile: {
      method: "PUT",
      path: all,
      summary: "Write a file completely or not at all",
      description: `The content may have any content type. \`If-Match\` and \`If-None-Match: *\` are checked at the moment the new file replaces the old one. ${relativePaths}`,
      example: { query: { path: "app/config.json", mkdirs: "1" } },
      right: "files",
      gated: true,
      agent: true,
      query: schemas.putQuerySchema,
      body: "bytes",
      responseMs: limits.uploadMs,
      responses: {
        200: response(schemas.fileSchema, "Replaced."),
        201: response(schemas.fileSchema, "Created."),
      },
      errors: [...writeErrors, "file_changed"],
    },
    removeFile: {
      method: "DELETE",
      path: all,
      summary: "Remove a file, a link or a folder",
      description: "A folder that is not empty needs `recursive`.",
      example: { query: { path: "app/dist", recursive: "1" } },
      right: "files",
      gated: true,
      agent: true,
      query: schemas.removeQuerySchema,
      argument: "path",
      responseMs: limits.fileCallMs,
      responses: { 200: response(schemas.removedSchema, "Removed.") },
      errors: [...writeErrors, "not_empty"],
    },
    statFile: {
      method: "GET",
      path: `${all}/stat`,
      call: "stat",
      summary: "Get kind, size, mode and time of a path",
      description: "A link is described itself, not what it points to.",
      example: { query: { path: "app/config.json" } },
      right: "files",
      agent: true,
      query: schemas.fileQuerySchema,
      argument: "path",
      responseMs: limits.fileCallMs,
      responses: { 200: response(schemas.fileSchema, "What is at the path now.") },
      errors: pathErrors,
    },
    listFiles: {
      method: "GET",
      path: `${all}/list`,
      summary: "List a folder, down to a depth, in pages",
      example: { query: { path: "app", depth: 2 } },
      right: "files",
      agent: true,
      query: schemas.listQuerySchema,
      responseMs: limits.fileCallMs,
      responses: { 200: response(schemas.filesSchema, "Ordered by the bytes of the names.") },
      errors: [...pathErrors, "too_many"],
    },
    watchFiles: {
      method: "GET",
      path: `${all}/watch`,
      summary: "Follow the changes below a folder",
      example: { query: { path: "app", recursive: "1" } },
      right: "files",
      agent: true,
      query: schemas.watchQuerySchema,
      responseMs: limits.fileCallMs,
      responses: {
        200: response(
          "stream",
          "Server-sent events `ready`, `change` with `changes`, `overflow` (changes were lost: list the folder again), `gone` and `error`.",
        ),
      },
      errors: [...pathErrors, "too_many"],
    },
    makeFolder: {
      method: "POST",
      path: `${all}/mkdir`,
      call: "mkdir",
      summary: "Create a folder",
      description:
        "With `parents` missing parents are created, and an existing folder is no error.",
      example: { body: { path: "app/src", parents: true } },
      right: "files",
      gated: true,
      agent: true,
      body: schemas.mkdirCallSchema,
      responseMs: limits.fileCallMs,
      responses: {
        200: response(schemas.fileSchema, "It existed."),
        201: response(schemas.fileSchema, "Created."),
      },
      errors: [...writeErrors, "file_exists"],
    },
    moveFile: {
      method: "POST",
      path: `${all}/move`,
      call: "move",
      summary: "Move or rename in one step",
      description: "A link is moved itself, not what it points to.",
      example: { body: { from: "draft.md", to: "docs/final.md" } },
      right: "files",
      gated: true,
      agent: true,
      body: schemas.moveCallSchema,
      responseMs: limits.fileCallMs,
      responses: { 200: response(schemas.fileSchema, "The file at its new path.") },
      errors: [...writeErrors, "file_exists", "not_empty"],
    },
    downloadArchive: {
      method: "GET",
      path: archive,
      summary: "Download a folder or file as a tar",
      description: "`Accept` chooses application/x-tar, application/gzip or application/zstd.",
      example: { query: { path: "app" } },
      right: "files",
      agent: true,
      query: schemas.archiveQuerySchema,
      responses: { 200: response("stream", "The archive; `Content-Type` says which.") },
      errors: [...pathErrors, "unsupported_type", "too_many"],
    },
    uploadArchive: {
      method: "PUT",
      path: archive,
      summary: "Unpack a tar into a folder",
      description: "`Content-Type` is application/x-tar, application/gzip or application/zstd.",
      example: { query: { path: "app" } },
      right: "files",
      gated: true,
      agent: true,
      query: schemas.archiveQuerySchema,
      body: "bytes",
      responseMs: limits.uploadMs,
      responses: { 200: response(schemas.unpackedSchema, "Unpacked completely.") },
      errors: [...writeErrors, "bad_archive", "file_exists"],
    },
    cloneRepository: {
      method: "POST",
      path: `${sandboxPath}/git/clone`,
      summary: "Clone a git repository",
      description: "Closing the connection cancels the clone and removes what it wrote.",
      example: { body: { url: "https://github.com/owner/name.git", dir: "name" } },
      right: "files",
      gated: true,
      agent: true,
      body: schemas.cloneCallSchema,
      responseMs: limits.fileCallMs,
      responses: {
        200: response("stream", "Server-sent events `progress`, then `done` or `error`."),
      },
      errors: [...writeErrors, "file_exists", "not_empty", "clone_failed", "unsupported"],
    },
  }) as const satisfies Record<string, VerbRow>;
