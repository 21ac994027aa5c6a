/** Reads the log of a process: the header `Accept` chooses between events and bytes. */
import { type LogsQuery, logsQuerySchema } from "../../protocol/process.ts";
import { verbs } from "../../protocol/verbs.ts";
import type { Handler } from "../http/context.ts";
import { bytesType, eventStreamType } from "../http/headers.ts";
import { sandboxObject } from "../http/objects.ts";
import { toHead, toHttp } from "../http/responses.ts";
import { validateTarget } from "../http/target.ts";
import { invalidField, validate } from "../http/validate.ts";
import { callerFor } from "../http/verb-handler.ts";

const row = verbs.processLogs;

export const logs: Handler = async (c) => {
  const id = c.req.param("id");
  const object = sandboxObject(c.env, id);
  const target = String(validateTarget("process", id, c.req.param("process" as never)));
  const raw = c.req.header("accept")?.includes(bytesType) === true;
  // A client that reconnects to the events sends the last one it has seen.
  const lastEventId = raw ? undefined : c.req.header("last-event-id");
  const fields =
    lastEventId === undefined ? c.req.query() : { ...c.req.query(), after: lastEventId };
  const args = { target, query: logsQuery(fields, raw), raw };
  const caller = callerFor(row, c.get("caller"));
  const requestId = c.get("requestId");
  // A log that nobody reads would keep a reader's place until its next output.
  if (c.req.method === "HEAD") {
    const process = await object.callVerb("getProcess", caller, { target }, requestId);
    return toHead(toHttp(process, verbs.getProcess), raw ? bytesType : eventStreamType);
  }
  return toHttp(await object.callVerb("processLogs", caller, args, requestId), row);
};

/** Bytes are those of one stream, counted by `offset`; cursors count both streams together. */
export function logsQuery(fields: unknown, raw: boolean): LogsQuery {
  const query = validate(logsQuerySchema, fields);
  if (raw && query.stream === undefined) {
    throw invalidField("stream", "must be stdout or stderr for raw bytes");
  }
  if (!raw && query.offset !== undefined) {
    throw invalidField("offset", "is for raw bytes (Accept: application/octet-stream); use after");
  }
  return query;
}
