/** Reads the queries of file routes, which the object has checked and written in full. */
import type { z } from "zod";
import type {
  fileQuerySchema,
  listQuerySchema,
  putQuerySchema,
  removeQuerySchema,
  watchQuerySchema,
} from "../../../src/protocol/file.ts";

type FileAddress = z.output<typeof fileQuerySchema>;

export function readFileQuery(query: URLSearchParams): FileAddress {
  const session = query.get("session");
  return { path: query.get("path") ?? ".", ...(session === null ? {} : { session }) };
}

export function readPutQuery(query: URLSearchParams): z.output<typeof putQuerySchema> {
  const mode = query.get("mode");
  return {
    ...readFileQuery(query),
    mkdirs: isSet(query.get("mkdirs")),
    ...(mode === null ? {} : { mode }),
  };
}

export function readRemoveQuery(query: URLSearchParams): z.output<typeof removeQuerySchema> {
  return { ...readFileQuery(query), recursive: isSet(query.get("recursive")) };
}

export function readListQuery(query: URLSearchParams): z.output<typeof listQuerySchema> {
  const cursor = query.get("cursor");
  return {
    ...readFileQuery(query),
    depth: Number(query.get("depth") ?? 1),
    limit: Number(query.get("limit") ?? 1000),
    ...(cursor === null ? {} : { cursor }),
  };
}

export function readWatchQuery(query: URLSearchParams): z.output<typeof watchQuerySchema> {
  return { ...readFileQuery(query), recursive: isSet(query.get("recursive") ?? "true") };
}

function isSet(flag: string | null): boolean {
  return flag === "true" || flag === "1";
}
