/**
 * Owns the routes of files: queries and calls are checked, bytes and answers are passed on untouched.
 */
import {
  fileQuerySchema,
  listQuerySchema,
  mkdirCallSchema,
  moveCallSchema,
  putQuerySchema,
  removeQuerySchema,
  watchQuerySchema,
} from "../../protocol/file.ts";
import type { Handler } from "../app.ts";
import { download, gatedQuery, lookAtFiles, upload, workOnFiles } from "../files.ts";
import { readBody } from "../http/body.ts";

export const read: Handler = (c) => download(c, "files", fileQuerySchema);

export const write: Handler = (c) => upload(c, "files", putQuerySchema);

export const remove: Handler = (c) =>
  workOnFiles(c, () => ({ do: "remove", query: gatedQuery(c, removeQuerySchema) }));

export const stat: Handler = (c) => lookAtFiles(c, "stat", fileQuerySchema);

export const list: Handler = (c) => lookAtFiles(c, "list", listQuerySchema);

export const watch: Handler = (c) => lookAtFiles(c, "watch", watchQuerySchema);

export const mkdir: Handler = (c) =>
  workOnFiles(c, async () => ({ do: "mkdir", call: await readBody(c.req.raw, mkdirCallSchema) }));

export const move: Handler = (c) =>
  workOnFiles(c, async () => ({ do: "move", call: await readBody(c.req.raw, moveCallSchema) }));
