/**
 * Owns the verbs about what runs in a sandbox over REST: processes, sessions, terminals.
 * Does not own how a call is sent (link.ts), nor output that goes on after a lost connection (live-*.ts).
 */
import type { IdempotentOptions, WorkApi } from "../protocol/work-api.ts";
import { Download } from "./http/download.ts";
import { gatedRequest, type HttpClient, type HttpRequest, pathSegment } from "./http/request.ts";

export function workOf(link: HttpClient, one: string): WorkApi {
  const place = (noun: string) => (id?: string) =>
    `${one}/${noun}${id === undefined ? "" : `/${pathSegment(id)}`}`;
  const processes = place("processes");
  const sessions = place("sessions");
  const terminals = place("terminals");
  const ask = <Content>(
    method: HttpRequest["method"],
    path: string,
    options: IdempotentOptions = {},
    call: Partial<HttpRequest> = {},
  ): Promise<Content> => {
    const { headers, query, isRepeatable } = gatedRequest(options);
    const known = { query: { ...call.query, ...query } };
    return link.request({
      method,
      path,
      ...call,
      ...known,
      headers: headers ?? {},
      isRepeatable: (call.isRepeatable ?? false) || (isRepeatable ?? false),
    });
  };
  return {
    startProcess: (body, options) => ask("POST", processes(), options, { body }),
    processes: (query = {}) => link.request({ method: "GET", path: processes(), query }),
    process: (id) => link.request({ method: "GET", path: processes(id) }),
    async processLogs(id, { follow = false, raw = false, ...query } = {}) {
      const response = await link.openStream({
        method: "GET",
        path: `${processes(id)}/logs`,
        query: { ...query, follow: Number(follow) },
        headers: { accept: raw ? "application/octet-stream" : "text/event-stream" },
      });
      // Raw bytes have no room for a sign of life.
      const timeout = raw && follow ? { idleTimeoutMs: Number.POSITIVE_INFINITY } : {};
      return new Download(response, { signal: link.signal, ...timeout });
    },
    waitForProcess: (id, query = {}) =>
      link.request({ method: "GET", path: `${processes(id)}/wait`, query }),
    writeStdin: (id, bytes, { offset, eof = false, ...options } = {}) =>
      ask("POST", `${processes(id)}/stdin`, options, {
        upload: { content: bytes, type: "application/octet-stream" },
        query: { offset, eof: Number(eof) },
        // What was taken already is skipped.
        isRepeatable: offset !== undefined,
      }),
    signalProcess: (id, signal, options) =>
      ask("POST", `${processes(id)}/signal`, options, { body: { signal } }),
    endProcess: (id, options) => ask("DELETE", processes(id), options),

    // With an id they are there or made: the same one again.
    createSession: (body = {}, options) =>
      ask("POST", sessions(), options, { body, isRepeatable: body.id !== undefined }),
    sessions: () => link.request({ method: "GET", path: sessions() }),
    session: (id) => link.request({ method: "GET", path: sessions(id) }),
    execInSession: (id, body, options) => ask("POST", `${sessions(id)}/exec`, options, { body }),
    startProcessInSession: (id, body, options) =>
      ask("POST", `${sessions(id)}/processes`, options, { body }),
    endSession: (id, options) => ask("DELETE", sessions(id), options),

    // A program that has ended has freed its id: asked for again it would run again. A shell waits for its input.
    createTerminal: (body = {}, options) =>
      ask("POST", terminals(), options, {
        body,
        isRepeatable: body.id !== undefined && body.argv === undefined,
      }),
    terminals: () => link.request({ method: "GET", path: terminals() }),
    terminal: (id) => link.request({ method: "GET", path: terminals(id) }),
    resizeTerminal: (id, body) =>
      link.request({ method: "PATCH", path: terminals(id), body, isRepeatable: true }),
    terminalScreen: (id) => link.request({ method: "GET", path: `${terminals(id)}/screen` }),
    endTerminal: (id) => link.request({ method: "DELETE", path: terminals(id) }),
  };
}
