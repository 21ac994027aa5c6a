/**
 * Owns the routes of processes: calls are checked, the object's answers are passed on untouched.
 */
import { limits } from "../../protocol/limits.ts";
import {
  processCallSchema,
  processesQuerySchema,
  signalCallSchema,
  stdinQuerySchema,
  waitQuerySchema,
} from "../../protocol/process.ts";
import type { Handler } from "../app.ts";
import { parseCall, readBody, readBytes } from "../http/body.ts";
import { handle, ownQuery } from "../http/query.ts";
import { keyedWork, look, work } from "../work.ts";
import { logsQuery } from "../work-queries.ts";

export const start: Handler = (c) =>
  keyedWork(c, async () => ({
    do: "startProcess",
    call: await readBody(c.req.raw, processCallSchema),
  }));

export const list: Handler = (c) =>
  look(c, () => ({ noun: "processes", query: parseCall(processesQuerySchema, c.req.query()) }));

export const get: Handler = (c) => look(c, () => ({ noun: "processes", id: handle(c, "process") }));

export const end: Handler = (c) =>
  work(c, () => ({ do: "endProcess", process: handle(c, "process") }));

export const logs: Handler = (c) =>
  look(c, () => {
    const id = handle(c, "process");
    const raw = c.req.header("accept")?.includes("application/octet-stream") === true;
    // A stream of events that comes back says itself what it has seen.
    const seen = raw ? undefined : c.req.header("last-event-id");
    const asked = seen === undefined ? c.req.query() : { ...c.req.query(), after: seen };
    return { noun: "processes", id, part: "logs", query: logsQuery(asked, raw), raw };
  });

export const wait: Handler = (c) =>
  look(c, () => {
    const id = handle(c, "process");
    const query = parseCall(waitQuerySchema, c.req.query());
    return { noun: "processes", id, part: "wait", query };
  });

export const stdin: Handler = (c) =>
  work(c, async () => {
    const process = handle(c, "process");
    const query = parseCall(stdinQuerySchema, ownQuery(c));
    const bytes = await readBytes(c.req.raw, limits.processStdinBytesMax);
    return { do: "writeStdin", process, query, bytes };
  });

export const signal: Handler = (c) =>
  work(c, async () => {
    const process = handle(c, "process");
    const call = await readBody(c.req.raw, signalCallSchema);
    return { do: "signalProcess", process, signal: call.signal };
  });
