/** Turns what an object returned into an HTTP response, or into the result of an RPC method. */
import type { AnyOutcome } from "../../objects/sandbox/dispatch/verb-call.ts";
import type { WireResponse } from "../../objects/shared/result.ts";
import { BerthError, type ErrorBody, errors } from "../../protocol/errors.ts";
import type { VerbRow } from "../../protocol/verbs/row.ts";
import { unwrap } from "./objects.ts";

const json = { "content-type": "application/json" };

/** A response of the agent is passed on as it is; the status of a value is the row's. */
export function toHttp(outcome: AnyOutcome, row: VerbRow): Response {
  if (outcome instanceof Response) return outcome;
  if ("json" in outcome)
    return new Response(outcome.json, { status: outcome.status, headers: json });
  const content = unwrap(outcome);
  const status = Number(Object.keys(row.responses)[0]);
  if (status === 204) return new Response(null, { status });
  return new Response(JSON.stringify(content), { status, headers: json });
}

/** What HEAD gets of a stream: its type where `found`, the response about what it would show, is no failure. */
export function toHead(found: Response, type: string): Response {
  return found.ok ? new Response(null, { headers: { "content-type": type } }) : found;
}

/** The result of an RPC method, or the failure, thrown. */
export async function toMethodResult(outcome: AnyOutcome, row: VerbRow): Promise<unknown> {
  // A Response has a property `ok` too.
  if (!(outcome instanceof Response || "json" in outcome)) return unwrap(outcome);
  const isStream = Object.values(row.responses).some(({ schema }) => schema === "stream");
  return isStream ? streamOf(outcome) : contentOf(outcome);
}

/** A response that was slow is a 200 that may contain an error. */
export async function contentOf<T extends object>(response: WireResponse): Promise<T> {
  const text = response instanceof Response ? await response.text() : response.json;
  const body = parseBody<T | ErrorBody>(text);
  if (!("error" in body)) return body;
  throw failureOf(body);
}

export async function streamOf(response: WireResponse): Promise<ReadableStream<Uint8Array>> {
  if (!(response instanceof Response)) throw failureOf(parseBody(response.json));
  if (response.ok && response.body !== null) return response.body;
  throw failureOf(parseBody(await response.text()));
}

/** Nothing has read the agent's response on the way, so it may be anything. */
function parseBody<T extends object>(text: string): T {
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === "object" && body !== null) return body as T;
  } catch {
    // Not JSON: the same failure as JSON that is no object.
  }
  throw invalidResponse();
}

function failureOf({ error }: Partial<ErrorBody>): BerthError {
  if (error === undefined || !Object.hasOwn(errors, error.code)) return invalidResponse();
  const { code, message, hint, retryable: _retryable, ...facts } = error;
  return new BerthError(code, message, { facts, ...(hint === undefined ? {} : { hint }) });
}

function invalidResponse(): BerthError {
  return new BerthError("operation_interrupted", "The sandbox sent an invalid response.", {
    hint: "The call may have taken effect. Check before you retry.",
    facts: { admitted: "unknown" },
  });
}
