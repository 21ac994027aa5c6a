/**
 * The methods of a sandbox over HTTP: one for each row of the table of verbs, derived from it, and those that a row
 * cannot describe (special.ts).
 */
import type { DerivedMethod, SandboxApi } from "../protocol/api.ts";
import { splitArguments } from "../protocol/verbs/arguments.ts";
import { isSandboxMethod, type Schemas, type VerbRow } from "../protocol/verbs/row.ts";
import { verbRows } from "../protocol/verbs/rows.ts";
import type { Cancellable } from "./http/cancellable.ts";
import { openDownload } from "./http/download.ts";
import { gatedRequest, type HttpClient, type HttpRequest, pathSegment } from "./http/request.ts";
import { type ClientFileApi, specialMethods } from "./special.ts";

export interface SandboxVerbs extends Omit<SandboxApi, keyof ClientFileApi>, ClientFileApi {}
/** The methods of a sandbox, each with `CallOptions`. */
export type SandboxCalls = Cancellable<SandboxVerbs>;

/** Between the end of the work and the first byte of the response; a response that takes less has the usual limit. */
const transportMs = 60_000;
const usualResponseMs = 180_000;

/** Without schemas, so that the schema library is not part of the SDK: the server checks calls. */
const sandboxRows = Object.entries(verbRows({} as Schemas) as Record<string, VerbRow>).filter(
  ([, row]) => isSandboxMethod(row),
);

type Method = (...args: unknown[]) => Promise<unknown>;

export function sandboxMethods(client: HttpClient, id: string): SandboxVerbs {
  const derived = derivedMethods(client, id, sandboxRows) as unknown;
  return {
    ...(derived as Pick<SandboxApi, DerivedMethod>),
    ...specialMethods(client, id),
  };
}

export function derivedMethods(
  client: HttpClient,
  id: string,
  rows: [name: string, row: VerbRow][],
): Record<string, Method> {
  const methods = rows.map(([name, row]): [string, Method] => [
    row.call ?? name,
    (...args) => send(client, row, toRequest(row, id, args)),
  ]);
  return Object.fromEntries(methods);
}

function send(client: HttpClient, row: VerbRow, request: HttpRequest): Promise<unknown> {
  const isStream = Object.values(row.responses).some(({ schema }) => schema === "stream");
  return isStream ? openDownload(client, request) : client.request(request);
}

function toRequest(row: VerbRow, id: string, args: unknown[]): HttpRequest {
  const { target, query, body, headers } = splitArguments(row, args);
  const gated = gatedRequest(row.gated === true ? headers : {});
  return {
    method: row.method,
    path: pathOf(row.path, id, target),
    ...gated,
    query: { ...(query as HttpRequest["query"]), ...gated.query },
    ...bodyOf(row, body),
    isRepeatable: gated.isRepeatable || mayRepeat(row, { ...query, ...Object(body) }),
    ...responseTimeout(row),
  };
}

function pathOf(path: string, id: string, target: unknown): string {
  return path
    .split("/")
    .map((part) => (part === ":id" ? pathSegment(id) : part))
    .map((part) => (part.startsWith(":") ? pathSegment(String(target)) : part))
    .join("/");
}

function bodyOf({ bodyBytesMax }: VerbRow, body: unknown): Pick<HttpRequest, "body" | "upload"> {
  if (bodyBytesMax === undefined) return body === undefined ? {} : { body };
  return { upload: { content: body as Uint8Array, type: "application/octet-stream" } };
}

function mayRepeat({ repeatable }: VerbRow, fields: Record<string, unknown>): boolean {
  return typeof repeatable === "function" ? repeatable(fields) : repeatable === true;
}

function responseTimeout({ responseMs = 0 }: VerbRow): Pick<HttpRequest, "responseTimeoutMs"> {
  const responseTimeoutMs = responseMs + transportMs;
  return responseTimeoutMs > usualResponseMs ? { responseTimeoutMs } : {};
}
