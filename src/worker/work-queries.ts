/**
 * Owns checking the queries of what runs, by REST and by methods, and what of them is passed on.
 */
import type { Query } from "../objects/sandbox/dispatch/work-call.ts";
import { type LogsQuery, logsQuerySchema, stdinQuerySchema } from "../protocol/process.ts";
import { parseCall } from "./http/body.ts";
import { bad } from "./http/query.ts";

/** Raw bytes are those of one stream; `offset` counts them, and cursors count both streams. */
export function logsQuery(asked: unknown, raw: boolean): LogsQuery {
  const query = parseCall(logsQuerySchema, asked);
  if (raw && query.stream === undefined) {
    throw bad("stream", "must be stdout or stderr where raw bytes are asked for");
  }
  if (!raw && query.offset !== undefined) {
    throw bad("offset", "is for raw bytes (Accept: application/octet-stream); use after");
  }
  return query;
}

export function stdinQuery(asked: unknown): Query {
  return parseCall(stdinQuerySchema, asked);
}
