/**
 * Owns the sandbox's interface over REST, for the contract suite: a thin client that throws what it is refused with.
 */
import type { BerthApi, GateOptions, SandboxApi } from "../../src/protocol/api.ts";
import type { ErrorBody } from "../../src/protocol/errors.ts";
import { BerthError } from "../../src/protocol/errors.ts";
import { call } from "./calls.ts";

type Sent = { body?: unknown; headers?: Record<string, string> };
type Gated = GateOptions & { force?: boolean };

/** `bearer` is a key, or a token of one sandbox. */
export function restBerth(bearer: string): BerthApi {
  const ask = async <T>(method: string, path: string, sent: Sent = {}): Promise<T> => {
    const response = await call(method, path, { key: bearer, ...sent });
    const text = await response.text();
    const answer = text === "" ? undefined : JSON.parse(text);
    // An answer that took long is a 200 with what failed inside.
    if (response.ok && answer?.error === undefined) return answer;
    const { code, message, retryable: _retryable, ...facts } = (answer as ErrorBody).error;
    throw new BerthError(code, message, { facts });
  };
  return {
    create: (body = {}) => ask("POST", "/v1/sandboxes", { body }),
    sandbox: (id) => restSandbox(ask, `/v1/sandboxes/${id}`),
  };
}

function restSandbox(
  ask: <T>(method: string, path: string, sent?: Sent) => Promise<T>,
  one: string,
): SandboxApi {
  const flags = (options: Gated) => {
    const query = new URLSearchParams();
    if (options.force !== undefined) query.set("force", String(options.force));
    if (options.wake !== undefined) query.set("wake", String(options.wake));
    return query.size === 0 ? "" : `?${query}`;
  };
  return {
    get: () => ask("GET", one),
    start: () => ask("POST", `${one}/start`),
    pause: (options = {}) =>
      ask("POST", `${one}/pause${flags(options)}`, { headers: gate(options) }),
    touch: () => ask("POST", `${one}/touch`),
    destroy: (options = {}) => ask("DELETE", `${one}${flags(options)}`, { headers: gate(options) }),
    exec: (body, options = {}) =>
      ask("POST", `${one}/exec${flags(options)}`, { body, headers: gate(options) }),
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
    events: (query = {}) => {
      const asked = Object.entries(query).map(([name, value]) => [name, String(value)]);
      return ask("GET", `${one}/events?${new URLSearchParams(Object.fromEntries(asked))}`);
    },
    createToken: (body) => ask("POST", `${one}/tokens`, { body }),
    revokeTokens: () => ask("DELETE", `${one}/tokens`),
    createTicket: () => ask("POST", `${one}/tickets`),
  };
}

function gate({ lease, waitMs }: GateOptions): Record<string, string> {
  return {
    ...(lease === undefined ? {} : { "berth-lease": lease }),
    ...(waitMs === undefined ? {} : { "berth-wait-ms": String(waitMs) }),
  };
}

function match(version: number | undefined): Record<string, string> {
  return version === undefined ? {} : { "if-match": `"${version}"` };
}
