/**
 * Owns the routes of sessions: calls are checked, the object's answers are passed on untouched.
 */
import { processCallSchema } from "../../protocol/process.ts";
import { sessionCallSchema, sessionExecCallSchema } from "../../protocol/session.ts";
import type { Handler } from "../app.ts";
import { readBody } from "../http/body.ts";
import { handle } from "../http/query.ts";
import { keyedWork, look, work } from "../work.ts";

export const create: Handler = (c) =>
  work(c, async () => ({
    do: "createSession",
    call: await readBody(c.req.raw, sessionCallSchema),
  }));

export const list: Handler = (c) => look(c, () => ({ noun: "sessions" }));

export const get: Handler = (c) => look(c, () => ({ noun: "sessions", id: handle(c, "session") }));

export const end: Handler = (c) =>
  work(c, () => ({ do: "endSession", session: handle(c, "session") }));

export const exec: Handler = (c) =>
  keyedWork(c, async () => ({
    do: "execInSession",
    session: handle(c, "session"),
    call: await readBody(c.req.raw, sessionExecCallSchema),
  }));

export const startProcess: Handler = (c) =>
  keyedWork(c, async () => ({
    do: "startProcess",
    session: handle(c, "session"),
    call: await readBody(c.req.raw, processCallSchema),
  }));
