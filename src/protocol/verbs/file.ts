/**
 * Owns the routes of files, archives and git. Reads never wake a container: without one they are refused.
 */
import { archiveQuerySchema, unpackedSchema } from "../archive.ts";
import type { ErrorCode } from "../errors.ts";
import {
  fileQuerySchema,
  fileSchema,
  filesSchema,
  listQuerySchema,
  mkdirCallSchema,
  moveCallSchema,
  putQuerySchema,
  removedSchema,
  removeQuerySchema,
  watchQuerySchema,
} from "../file.ts";
import { cloneCallSchema } from "../git.ts";
import { atTheGate, badBody, ofOneAlive, one, type Route } from "./verb.ts";

const all = `${one}/files`;

const ofOnePlace: ErrorCode[] = [
  ...ofOneAlive,
  "bad_request",
  "stale_handle",
  "not_running",
  "start_failed",
  "operation_interrupted",
  "file_not_found",
  "file_forbidden",
  "not_a_folder",
];
const ofOneFile: ErrorCode[] = [...ofOnePlace, "not_a_file"];
const ofAWrite: ErrorCode[] = [...ofOneFile, ...atTheGate, "disk_full", "too_many"];

/** Of bodies that pass as they are. */
const ofBytes: ErrorCode[] = ["body_timeout", "too_large", "unsupported_type"];

export const fileRoutes = {
  readFile: {
    method: "GET",
    path: all,
    summary:
      "The bytes of a file, all or one `Range`; `If-None-Match` and `If-Range` take its entity tag. A relative path is below /workspace, or below the folder of `session`",
    right: "files",
    query: fileQuerySchema,
    answers: {
      200: { schema: "stream", meaning: "All of it." },
      206: { schema: "stream", meaning: "The part that `Content-Range` names." },
    },
    errors: [...ofOneFile, "bad_range"],
  },
  writeFile: {
    method: "PUT",
    path: all,
    summary:
      "Write a file, whole or not at all, of any content type; `If-Match` and `If-None-Match: *` are looked at in the moment in which it takes its place",
    right: "files",
    gated: true,
    query: putQuerySchema,
    body: "bytes",
    answers: {
      200: { schema: fileSchema, meaning: "Replaced." },
      201: { schema: fileSchema, meaning: "Made." },
    },
    errors: [...ofAWrite, ...ofBytes, "file_changed"],
  },
  removeFile: {
    method: "DELETE",
    path: all,
    summary: "Remove a file, a link or an empty folder; with `recursive` a folder and all it holds",
    right: "files",
    gated: true,
    query: removeQuerySchema,
    answers: { 200: { schema: removedSchema, meaning: "Removed." } },
    errors: [...ofAWrite, "not_empty"],
  },
  statFile: {
    method: "GET",
    path: `${all}/stat`,
    summary: "What is at a path: a link is told itself, not what it leads to",
    right: "files",
    query: fileQuerySchema,
    answers: { 200: { schema: fileSchema, meaning: "As it is now." } },
    errors: ofOnePlace,
  },
  listFiles: {
    method: "GET",
    path: `${all}/list`,
    summary: "What a folder holds, down to a depth, by pages",
    right: "files",
    query: listQuerySchema,
    answers: { 200: { schema: filesSchema, meaning: "In the order of the names' bytes." } },
    errors: [...ofOnePlace, "too_many"],
  },
  watchFiles: {
    method: "GET",
    path: `${all}/watch`,
    summary: "What changes below a folder, as it happens: server-sent events",
    right: "files",
    query: watchQuerySchema,
    answers: {
      200: {
        schema: "stream",
        meaning:
          "Events `ready`, `change` with `changes`, `overflow` (some were lost: list anew), `gone`, `error`.",
      },
    },
    errors: [...ofOnePlace, "too_many"],
  },
  makeFolder: {
    method: "POST",
    path: `${all}/mkdir`,
    summary: "Make a folder; with `parents` also those on the way, and being there is fine",
    right: "files",
    gated: true,
    body: mkdirCallSchema,
    answers: {
      200: { schema: fileSchema, meaning: "It was there." },
      201: { schema: fileSchema, meaning: "Made." },
    },
    errors: [...ofAWrite, ...badBody, "file_exists"],
  },
  moveFile: {
    method: "POST",
    path: `${all}/move`,
    summary: "Move or rename, in one step; a link itself and not what it leads to",
    right: "files",
    gated: true,
    body: moveCallSchema,
    answers: { 200: { schema: fileSchema, meaning: "Where it is then." } },
    errors: [...ofAWrite, ...badBody, "file_exists", "not_empty"],
  },
  downloadArchive: {
    method: "GET",
    path: `${one}/archive`,
    summary:
      "A folder or file as a tar in one stream: `Accept` application/x-tar, application/gzip or application/zstd",
    right: "files",
    query: archiveQuerySchema,
    answers: { 200: { schema: "stream", meaning: "The archive; `Content-Type` says which." } },
    errors: [...ofOnePlace, "unsupported_type", "too_many"],
  },
  uploadArchive: {
    method: "PUT",
    path: `${one}/archive`,
    summary:
      "Unpack a tar into a folder: `Content-Type` application/x-tar, application/gzip or application/zstd",
    right: "files",
    gated: true,
    query: archiveQuerySchema,
    body: "bytes",
    answers: { 200: { schema: unpackedSchema, meaning: "All of it is there." } },
    errors: [...ofAWrite, ...ofBytes, "bad_archive", "file_exists"],
  },
  cloneRepository: {
    method: "POST",
    path: `${one}/git/clone`,
    summary: "Clone a git repository; who goes away ends it, and nothing of it stays",
    right: "files",
    gated: true,
    body: cloneCallSchema,
    answers: {
      200: { schema: "stream", meaning: "Server-sent events `progress`, then `done` or `error`." },
    },
    errors: [...ofAWrite, ...badBody, "file_exists", "not_empty", "clone_failed", "unsupported"],
  },
} as const satisfies Record<string, Route>;
