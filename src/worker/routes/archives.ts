/**
 * Owns the routes of archives: whole trees in one stream, up and down.
 */
import { archiveQuerySchema, archiveTypes } from "../../protocol/archive.ts";
import { BerthError } from "../../protocol/errors.ts";
import type { Handler } from "../app.ts";
import { download, upload } from "../files.ts";

export const get: Handler = (c) => download(c, "archive", archiveQuerySchema);

export const put: Handler = (c) => {
  checkArchiveType(c.req.header("content-type"));
  return upload(c, "archive", archiveQuerySchema);
};

export function checkArchiveType(told: string | undefined): void {
  const type = told?.split(";")[0]?.trim().toLowerCase() ?? "";
  if (Object.hasOwn(archiveTypes, type)) return;
  const types = Object.keys(archiveTypes).join(", ");
  throw new BerthError("unsupported_type", `The body must be one of ${types}.`, {
    hint: "Send a `Content-Type` that says which.",
  });
}
