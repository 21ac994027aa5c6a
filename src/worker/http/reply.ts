/**
 * Owns what becomes of an object's reply: an answer of REST, or for those who call by methods its content.
 */
import type { Reply } from "../../objects/shared/result.ts";
import { BerthError, type ErrorBody, errors } from "../../protocol/errors.ts";

export function answered(reply: Reply): Response {
  if (reply instanceof Response) return reply;
  const headers = { "content-type": "application/json" };
  return new Response(reply.json, { status: reply.status, headers });
}

/** An answer that took long is a 200 with what failed inside. */
export async function contentOf<T extends object>(reply: Reply): Promise<T> {
  const text = reply instanceof Response ? await reply.text() : reply.json;
  const body = bodyIn<T | ErrorBody>(text);
  if (!("error" in body)) return body;
  throw failureOf(body);
}

export async function streamOf(reply: Reply): Promise<ReadableStream<Uint8Array>> {
  if (!(reply instanceof Response)) throw failureOf(bodyIn(reply.json));
  if (reply.ok && reply.body !== null) return reply.body;
  throw failureOf(bodyIn(await reply.text()));
}

/** What passed through without being read is whatever the agent wrote. */
function bodyIn<T extends object>(text: string): T {
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === "object" && body !== null) return body as T;
  } catch {
    // Told below.
  }
  throw noAnswer();
}

function failureOf({ error }: Partial<ErrorBody>): BerthError {
  if (error === undefined || !Object.hasOwn(errors, error.code)) return noAnswer();
  const { code, message, hint, retryable: _retryable, ...facts } = error;
  return new BerthError(code, message, { facts, ...(hint === undefined ? {} : { hint }) });
}

function noAnswer(): BerthError {
  return new BerthError(
    "operation_interrupted",
    "The sandbox answered nothing that is an answer.",
    {
      hint: "What it did before stays done; look at it before you repeat the call.",
      facts: { admitted: "unknown" },
    },
  );
}
