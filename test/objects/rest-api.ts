/**
 * Owns the sandbox's interface over REST, for the contract suite: a thin client that throws what it is refused with.
 * Does not own how a call reaches the door, nor whose key it carries.
 */
import type { BerthApi, GateOptions, SandboxApi } from "../../src/protocol/api.ts";
import type { ErrorBody } from "../../src/protocol/errors.ts";
import { BerthError } from "../../src/protocol/errors.ts";
import type { FileApi } from "../../src/protocol/file-api.ts";
import { restFiles } from "./rest-files.ts";
import { type Ask, gate, type Open, queryOf, restWork } from "./rest-work.ts";

type Gated = GateOptions & { force?: boolean };

type Sent = { body?: unknown; headers?: Record<string, string> };

/** Bytes and streams are sent as they are, anything else as JSON. */
export type Call = (method: string, path: string, sent?: Sent) => Promise<Response>;

export function restApi(call: Call): BerthApi {
  const ask: Ask = async (method, path, { bytes, body, headers = {} } = {}) => {
    const sent =
      bytes === undefined ? { body, headers } : { body: bytes, headers: asBytes(headers) };
    const response = await call(method, path, sent);
    const text = await response.text();
    const answer = text === "" ? undefined : JSON.parse(text);
    // An answer that took long is a 200 with what failed inside.
    if (response.ok && answer?.error === undefined) return answer;
    throw failureOf(answer as ErrorBody);
  };
  const open: Open = async (path, headers) => {
    const response = await call("GET", path, { headers });
    if (response.ok && response.body !== null) return response.body;
    throw failureOf((await response.json()) as ErrorBody);
  };
  return {
    create: (body = {}, { idempotencyKey } = {}) =>
      ask("POST", "/v1/sandboxes", {
        body,
        headers: idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey },
      }),
    list: (query = {}) => {
      const { metadata = [], ...rest } = query;
      const asked = new URLSearchParams(
        Object.entries(rest).map(([name, value]) => [name, String(value)]),
      );
      for (const pair of metadata) asked.append("metadata", pair);
      return ask("GET", `/v1/sandboxes?${asked}`);
    },
    counts: () => ask("GET", "/v1/counts"),
    events: (query = {}) => ask("GET", `/v1/events${queryOf(query)}`),
    sandbox: (id) => ({
      ...restSandbox(ask, open, `/v1/sandboxes/${id}`),
      ...restFiles(ask, call, `/v1/sandboxes/${id}`),
    }),
  };
}

function asBytes(headers: Record<string, string>): Record<string, string> {
  return { ...headers, "content-type": "application/octet-stream" };
}

export function failureOf({ error }: ErrorBody): BerthError {
  const { code, message, retryable: _retryable, ...facts } = error;
  return new BerthError(code, message, { facts });
}

function restSandbox(ask: Ask, open: Open, one: string): Omit<SandboxApi, keyof FileApi> {
  const flags = ({ force, wake }: Gated) => queryOf({ force, wake });
  return {
    ...restWork(ask, open, one),
    get: () => ask("GET", one),
    start: () => ask("POST", `${one}/start`),
    pause: (options = {}) =>
      ask("POST", `${one}/pause${flags(options)}`, { headers: gate(options) }),
    touch: () => ask("POST", `${one}/touch`),
    destroy: (options = {}) => ask("DELETE", `${one}${flags(options)}`, { headers: gate(options) }),
    exec: (body, options = {}) =>
      ask("POST", `${one}/exec${flags(options)}`, { body, headers: gate(options) }),
    makeCheckpoint: (body = {}, options = {}) =>
      ask("POST", `${one}/checkpoints`, { body, headers: gate(options) }),
    checkpoints: () => ask("GET", `${one}/checkpoints`),
    checkpoint: (id) => ask("GET", `${one}/checkpoints/${id}`),
    removeCheckpoint: (id) => ask("DELETE", `${one}/checkpoints/${id}`),
    restore: (id, options = {}) =>
      ask("POST", `${one}/checkpoints/${id}/restore`, { headers: gate(options) }),
    acquireLease: (body = {}) => ask("POST", `${one}/lease`, { body }),
    renewLease: (lease, body = {}) =>
      ask("PUT", `${one}/lease`, { body, headers: gate({ lease }) }),
    releaseLease: (lease, { force = false } = {}) =>
      ask("DELETE", `${one}/lease?force=${force}`, { headers: gate({ lease }) }),
    breakLease: (reason) =>
      ask("DELETE", `${one}/lease?break=true&reason=${encodeURIComponent(reason)}`),
    lease: () => ask("GET", `${one}/lease`),
    metadata: () => ask("GET", `${one}/metadata`),
    patchMetadata: (body, { ifMatch } = {}) =>
      ask("PATCH", `${one}/metadata`, { body, headers: match(ifMatch) }),
    replaceMetadata: (body, { ifMatch }) =>
      ask("PUT", `${one}/metadata`, { body, headers: match(ifMatch) }),
    events: (query = {}) => ask("GET", `${one}/events${queryOf(query)}`),
    createToken: (body) => ask("POST", `${one}/tokens`, { body }),
    revokeTokens: () => ask("DELETE", `${one}/tokens`),
    createTicket: () => ask("POST", `${one}/tickets`),
  };
}

function match(version: number | undefined): Record<string, string> {
  return version === undefined ? {} : { "if-match": `"${version}"` };
}
