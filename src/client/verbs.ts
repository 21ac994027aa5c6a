/**
 * Owns the verbs of a sandbox over REST, except those about files (files.ts) and what runs in it (work.ts).
 * Does not own how a call is sent (link.ts).
 */
import type { GateOptions, SandboxApi } from "../protocol/api.ts";
import { limits } from "../protocol/limits.ts";
import { type ClientFileApi, filesOf } from "./files.ts";
import { Download } from "./http/download.ts";
import { gatedRequest, type HttpClient, pathSegment } from "./http/request.ts";
import { workOf } from "./work.ts";

export interface SandboxVerbs extends Omit<SandboxApi, keyof ClientFileApi>, ClientFileApi {}

/** Copying a tree, while the container stands still. */
const copying = { responseTimeoutMs: limits.snapshotTimeoutMs + 60_000 };

export function verbsOf(link: HttpClient, id: string): SandboxVerbs {
  const one = `/v1/sandboxes/${pathSegment(id)}`;
  const checkpoint = (name: string) => `${one}/checkpoints/${pathSegment(name)}`;
  return {
    ...workOf(link, one),
    ...filesOf(link, one),
    get: () => link.request({ method: "GET", path: one }),
    start: () => link.request({ method: "POST", path: `${one}/start`, isRepeatable: true }),
    touch: () => link.request({ method: "POST", path: `${one}/touch`, isRepeatable: true }),
    pause({ force, discardFiles, ...options } = {}) {
      const { headers, query } = gated(options);
      const asked = { force, discardFiles, ...query };
      return link.request({
        method: "POST",
        path: `${one}/pause`,
        headers,
        query: asked,
        ...copying,
      });
    },
    destroy({ force, ...options } = {}) {
      const { headers, query } = gated(options);
      const asked = { force, ...query };
      return link.request({
        method: "DELETE",
        path: one,
        headers,
        query: asked,
        isRepeatable: true,
      });
    },
    exec: (body, options = {}) =>
      link.request({ method: "POST", path: `${one}/exec`, body, ...gatedRequest(options) }),
    makeCheckpoint: (body = {}, options = {}) =>
      link.request({
        method: "POST",
        path: `${one}/checkpoints`,
        body,
        ...gated(options),
        ...copying,
      }),
    checkpoints: () => link.request({ method: "GET", path: `${one}/checkpoints` }),
    checkpoint: (name) => link.request({ method: "GET", path: checkpoint(name) }),
    removeCheckpoint: (name) => link.request({ method: "DELETE", path: checkpoint(name) }),
    restore: (name, options = {}) =>
      link.request({
        method: "POST",
        path: `${checkpoint(name)}/restore`,
        ...gated(options),
        ...copying,
      }),
    ...leaseOf(link, one),
    ...metadataOf(link, one),
    events: (query = {}) => link.request({ method: "GET", path: `${one}/events`, query }),
    streamEvents: (query) => streamOf(link, `${one}/events`, query),
    createToken: (body) => link.request({ method: "POST", path: `${one}/tokens`, body }),
    revokeTokens: () =>
      link.request({ method: "DELETE", path: `${one}/tokens`, isRepeatable: true }),
    createTicket: () => link.request({ method: "POST", path: `${one}/tickets` }),
    openPort: (body) => link.request({ method: "POST", path: `${one}/ports`, body }),
    ports: () => link.request({ method: "GET", path: `${one}/ports` }),
    closePort: (port) => link.request({ method: "DELETE", path: `${one}/ports/${port}` }),
  };
}

/** Events that go on after this number. */
export async function streamOf(
  link: HttpClient,
  path: string,
  { after = 0 }: { after?: number } = {},
): Promise<AsyncIterable<Uint8Array>> {
  const query = { after, follow: 1 };
  return new Download(await link.openStream({ method: "GET", path, query }), {
    signal: link.signal,
  });
}

type LeaseVerbs = Pick<
  SandboxApi,
  "acquireLease" | "renewLease" | "releaseLease" | "breakLease" | "lease"
>;

function leaseOf(link: HttpClient, one: string): LeaseVerbs {
  const path = `${one}/lease`;
  return {
    // With a ticket it is the same place in the queue, or the same lease.
    acquireLease: (body = {}) =>
      link.request({ method: "POST", path, body, isRepeatable: body.ticket !== undefined }),
    renewLease: (lease, body = {}) =>
      link.request({ method: "PUT", path, body, ...gated({ lease }), isRepeatable: true }),
    releaseLease: (lease, { force = false } = {}) =>
      link.request({
        method: "DELETE",
        path,
        ...gated({ lease }),
        query: { force },
        isRepeatable: true,
      }),
    breakLease: (reason) =>
      link.request({ method: "DELETE", path, query: { break: true, reason } }),
    lease: () => link.request({ method: "GET", path }),
  };
}

type MetadataVerbs = Pick<SandboxApi, "metadata" | "patchMetadata" | "replaceMetadata">;

function metadataOf(link: HttpClient, one: string): MetadataVerbs {
  const path = `${one}/metadata`;
  const match = (version?: number) => ({
    "if-match": version === undefined ? undefined : `"${version}"`,
  });
  return {
    metadata: () => link.request({ method: "GET", path }),
    patchMetadata: (body, { ifMatch } = {}) =>
      link.request({ method: "PATCH", path, body, headers: match(ifMatch) }),
    replaceMetadata: (body, { ifMatch }) =>
      link.request({ method: "PUT", path, body, headers: match(ifMatch) }),
  };
}

function gated(options: GateOptions) {
  const { headers = {}, query = {} } = gatedRequest(options);
  return { headers, query };
}
