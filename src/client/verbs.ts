/**
 * The methods of a sandbox over HTTP: one for each row of the table of verbs, derived from it, and those that a row
 * cannot describe (special.ts).
 */
import type { DerivedMethod, SandboxApi } from "../protocol/api.ts";
import { asBerthError } from "../protocol/error-codes.ts";
import { splitArguments } from "../protocol/verbs/arguments.ts";
import { isSandboxMethod, type Schemas, type VerbRow } from "../protocol/verbs/row.ts";
import { verbRows } from "../protocol/verbs/rows.ts";
import type { Cancellable } from "./http/cancellable.ts";
import { openDownload } from "./http/download.ts";
import { randomId } from "./http/random-id.ts";
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
  // With an idempotency key a command continues without its caller.
  const isCommand = row.path.endsWith("/exec") && request.isRepeatable !== true;
  if (isCommand) return sendCommand(client, request);
  const isStream = Object.values(row.responses).some(({ schema }) => schema === "stream");
  return isStream ? openDownload(client, request) : client.request(request);
}

const cancelWithinMs = 2_000;

/**
 * Tells the server when the caller gives up: the end of the connection alone would show only when a response is written.
 * The command then ends at once, instead of seconds later.
 */
async function sendCommand(client: HttpClient, request: HttpRequest): Promise<unknown> {
  const callId = request.headers?.["berth-call-id"] ?? randomId(16);
  const headers = { ...request.headers, "berth-call-id": callId };
  const [, version, kind, id] = request.path.split("/");
  const path = `/${version}/${kind}/${id}/calls/${callId}`;
  const patient = client.withOnly({ answerWithinMs: cancelWithinMs });
  const cancel = () => patient.request({ method: "DELETE", path }).catch(() => undefined);
  const { signal } = client;
  signal?.addEventListener("abort", cancel, { once: true });
  try {
    return await client.request({ ...request, headers });
  } catch (error) {
    // Nobody will ask for its result any more.
    if (signal?.aborted !== true && isOutcomeUnknown(error)) void cancel();
    throw error;
  } finally {
    signal?.removeEventListener("abort", cancel);
  }
}

function isOutcomeUnknown(error: unknown): boolean {
  const known = asBerthError(error);
  return known?.code === "operation_interrupted" && known.facts.admitted === "unknown";
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
