/**
 * Owns reading the query strings of file routes by hand: each field once, none that is not known.
 * Does not own their form: src/protocol/file.ts; a test holds both together.
 */
import type { z } from "zod";
import { handlePattern, handleWords } from "../../../src/protocol/fields/handle.ts";
import type {
  fileQuerySchema,
  listQuerySchema,
  putQuerySchema,
  removeQuerySchema,
  watchQuerySchema,
} from "../../../src/protocol/file.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { refuse, textOf, wholeOf } from "../server/fields.ts";

type Fields = Record<string, string>;
export type At = z.output<typeof fileQuerySchema>;

export function readFileQuery(search: string): At {
  return atOf(fieldsOf(search, ["path", "session"]));
}

export function readPutQuery(search: string): z.output<typeof putQuerySchema> {
  const fields = fieldsOf(search, ["path", "session", "mkdirs", "mode"]);
  return {
    ...atOf(fields),
    mkdirs: flagOf(fields.mkdirs, "mkdirs", false),
    ...(fields.mode === undefined ? {} : { mode: modeOf(fields.mode) }),
  };
}

export function readRemoveQuery(search: string): z.output<typeof removeQuerySchema> {
  const fields = fieldsOf(search, ["path", "session", "recursive"]);
  return { ...atOf(fields), recursive: flagOf(fields.recursive, "recursive", false) };
}

export function readListQuery(search: string): z.output<typeof listQuerySchema> {
  const fields = fieldsOf(search, ["path", "session", "depth", "limit", "cursor"]);
  const { cursor } = fields;
  if (cursor !== undefined && cursor.length > limits.pathBytesMax * 4) {
    refuse("cursor", "is none of a list");
  }
  return {
    ...atOf({ path: ".", ...fields }),
    depth: countOf(fields.depth, "depth", 1, limits.fileListDepthMax),
    limit: countOf(fields.limit, "limit", 1000, limits.fileListPageMax),
    ...(cursor === undefined ? {} : { cursor }),
  };
}

export function readWatchQuery(search: string): z.output<typeof watchQuerySchema> {
  const fields = fieldsOf(search, ["path", "session", "recursive"]);
  return {
    ...atOf({ path: ".", ...fields }),
    recursive: flagOf(fields.recursive, "recursive", true),
  };
}

/** Bytes that are no UTF-8 cannot be named: they are refused, not replaced. */
export function fieldsOf(search: string, known: string[]): Fields {
  const fields: Fields = {};
  for (const part of search.replace(/^\?/, "").split("&")) {
    if (part === "") continue;
    const equals = part.indexOf("=");
    const name = decoded(equals < 0 ? part : part.slice(0, equals), "query");
    if (!known.includes(name)) refuse(name, "is not known");
    if (Object.hasOwn(fields, name)) refuse(name, "must be given once");
    fields[name] = equals < 0 ? "" : decoded(part.slice(equals + 1), name);
  }
  return fields;
}

function decoded(text: string, field: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    refuse(field, "must be UTF-8, percent-encoded");
  }
}

export function atOf({ path, session }: Fields): At {
  return {
    path: pathOf(path, "path"),
    ...(session === undefined ? {} : { session: sessionOf(session) }),
  };
}

export function pathOf(value: unknown, field: string): string {
  const path = textOf(value, field);
  if (path === "") refuse(field, "must not be empty");
  if (path.includes("\0")) refuse(field, "must not contain a NUL");
  if (!path.isWellFormed()) refuse(field, "must be well-formed Unicode");
  if (Buffer.byteLength(path) > limits.pathBytesMax) {
    refuse(field, `must be at most ${limits.pathBytesMax} bytes of UTF-8`);
  }
  return path;
}

export function sessionOf(value: unknown): string {
  const session = textOf(value, "session");
  if (!handlePattern.test(session)) refuse("session", handleWords);
  return session;
}

export function modeOf(value: unknown): string {
  const mode = textOf(value, "mode");
  if (!/^[0-7]{3,4}$/.test(mode)) refuse("mode", "must be an octal mode such as 644");
  return mode;
}

function flagOf(text: string | undefined, field: string, otherwise: boolean): boolean {
  if (text === undefined) return otherwise;
  if (!/^(0|1|true|false)$/.test(text)) refuse(field, "must be 1, 0, true or false");
  return text === "1" || text === "true";
}

function countOf(text: string | undefined, field: string, otherwise: number, max: number): number {
  return text === undefined ? otherwise : wholeOf(text, field, { min: 1, max });
}
