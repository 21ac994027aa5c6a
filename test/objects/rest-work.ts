/**
 * Owns the verbs about what runs in a sandbox over REST, for the contract suite.
 * Does not own asking: rest.ts does.
 */
import type { GateOptions } from "../../src/protocol/api.ts";
import type { KeyedOptions, WorkApi } from "../../src/protocol/work-api.ts";

export type Sent = { body?: unknown; bytes?: Uint8Array; headers?: Record<string, string> };
export type Ask = <T>(method: string, path: string, sent?: Sent) => Promise<T>;
export type Open = (path: string, headers: Record<string, string>) => Promise<ReadableStream>;
export type Asked = Record<string, string | number | boolean | undefined>;

export function restWork(ask: Ask, open: Open, one: string): WorkApi {
  const [processes, sessions, terminals] = ["processes", "sessions", "terminals"].map(
    (noun) => (id?: string) => `${one}/${noun}${id === undefined ? "" : `/${id}`}`,
  ) as [Path, Path, Path];
  return {
    startProcess: (body, options) => gatedAsk(ask, "POST", processes(), options, { body }),
    processes: (query = {}) => ask("GET", `${processes()}${queryOf(query)}`),
    process: (id) => ask("GET", processes(id)),
    processLogs: (id, { follow = false, raw = false, ...query } = {}) =>
      open(`${processes(id)}/logs${queryOf({ ...query, follow: Number(follow) })}`, {
        accept: raw ? "application/octet-stream" : "text/event-stream",
      }),
    waitForProcess: (id, query = {}) => ask("GET", `${processes(id)}/wait${queryOf(query)}`),
    writeStdin: (id, bytes, { offset, eof = false, ...gate } = {}) =>
      gatedAsk(
        ask,
        "POST",
        `${processes(id)}/stdin`,
        gate,
        { bytes },
        { offset, eof: Number(eof) },
      ),
    signalProcess: (id, signal, options) =>
      gatedAsk(ask, "POST", `${processes(id)}/signal`, options, { body: { signal } }),
    endProcess: (id, options) => gatedAsk(ask, "DELETE", processes(id), options),

    createSession: (body = {}, options) => gatedAsk(ask, "POST", sessions(), options, { body }),
    sessions: () => ask("GET", sessions()),
    session: (id) => ask("GET", sessions(id)),
    execInSession: (id, body, options) =>
      gatedAsk(ask, "POST", `${sessions(id)}/exec`, options, { body }),
    startProcessInSession: (id, body, options) =>
      gatedAsk(ask, "POST", `${sessions(id)}/processes`, options, { body }),
    endSession: (id, options) => gatedAsk(ask, "DELETE", sessions(id), options),

    createTerminal: (body = {}, options) => gatedAsk(ask, "POST", terminals(), options, { body }),
    terminals: () => ask("GET", terminals()),
    terminal: (id) => ask("GET", terminals(id)),
    resizeTerminal: (id, body) => ask("PATCH", terminals(id), { body }),
    terminalScreen: (id) => ask("GET", `${terminals(id)}/screen`),
    endTerminal: (id) => ask("DELETE", terminals(id)),
  };
}

type Path = (id?: string) => string;

function gatedAsk<T>(
  ask: Ask,
  method: string,
  path: string,
  options: KeyedOptions = {},
  sent: Sent = {},
  query: Asked = {},
): Promise<T> {
  const { wake } = options;
  return ask(method, `${path}${queryOf({ ...query, wake })}`, { ...sent, headers: gate(options) });
}

/** What is not given is left out. */
export function queryOf(query: Asked): string {
  const known = Object.entries(query).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(known.map(([name, value]) => [name, String(value)]));
  return known.length === 0 ? "" : `?${text}`;
}

export function gate({
  lease,
  waitMs,
  idempotencyKey,
}: GateOptions & KeyedOptions): Record<string, string> {
  return {
    ...(lease === undefined ? {} : { "berth-lease": lease }),
    ...(waitMs === undefined ? {} : { "berth-wait-ms": String(waitMs) }),
    ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
  };
}
