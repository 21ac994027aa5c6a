/**
 * The methods of a sandbox that rows cannot describe: the lease by its token, metadata with a version, events and logs
 * as streams.
 */
import type { SandboxApi } from "../protocol/api.ts";
import { openDownload } from "./http/download.ts";
import { type HttpClient, type HttpRequest, pathSegment } from "./http/request.ts";

type SpecialMethods = Pick<
  SandboxApi,
  | "renewLease"
  | "releaseLease"
  | "breakLease"
  | "patchMetadata"
  | "replaceMetadata"
  | "events"
  | "streamEvents"
  | "processLogs"
>;

export function specialMethods(client: HttpClient, id: string): SpecialMethods {
  const sandbox = `/v1/sandboxes/${pathSegment(id)}`;
  const lease = `${sandbox}/lease`;
  const metadata = `${sandbox}/metadata`;
  const ofHolder = (token: string) => ({
    path: lease,
    headers: { "berth-lease": token },
    isRepeatable: true,
  });
  return {
    renewLease: (token, body = {}) => client.request({ method: "PUT", ...ofHolder(token), body }),
    releaseLease: (token, { force = false } = {}) =>
      client.request({ method: "DELETE", ...ofHolder(token), query: { force } }),
    breakLease: (reason) =>
      client.request({ method: "DELETE", path: lease, query: { break: true, reason } }),
    patchMetadata: (body, { ifMatch } = {}) =>
      client.request({ method: "PATCH", path: metadata, body, headers: versionHeaders(ifMatch) }),
    replaceMetadata: (body, { ifMatch }) =>
      client.request({ method: "PUT", path: metadata, body, headers: versionHeaders(ifMatch) }),
    events: (query = {}) => client.request({ method: "GET", path: `${sandbox}/events`, query }),
    streamEvents: (query) => streamEvents(client, `${sandbox}/events`, query),
    processLogs(process, { follow = false, raw = false, ...query } = {}) {
      const request: HttpRequest = {
        method: "GET",
        path: `${sandbox}/processes/${pathSegment(process)}/logs`,
        query: { ...query, follow: Number(follow) },
        headers: { accept: raw ? "application/octet-stream" : "text/event-stream" },
      };
      // Raw bytes leave no room for a keepalive.
      const timeout = raw && follow ? { idleTimeoutMs: Number.POSITIVE_INFINITY } : {};
      return openDownload(client, request, timeout);
    },
  };
}

/** The events after this number, as server-sent events. */
export function streamEvents(
  client: HttpClient,
  path: string,
  { after = 0 }: { after?: number } = {},
): Promise<AsyncIterable<Uint8Array>> {
  return openDownload(client, { method: "GET", path, query: { after, follow: 1 } });
}

function versionHeaders(version: number | undefined): Record<string, string | undefined> {
  return { "if-match": version === undefined ? undefined : `"${version}"` };
}
