/**
 * Owns what becomes of an object's reply: an answer of REST, or for those who call by methods its content.
 */
import type { Reply } from "../objects/answer.ts";
import { BerthError, type ErrorBody } from "../protocol/errors.ts";

export function answered(reply: Reply): Response {
  if (reply instanceof Response) return reply;
  const headers = { "content-type": "application/json" };
  return new Response(reply.json, { status: reply.status, headers });
}

/** An answer that took long is a 200 with what failed inside. */
export async function contentOf<T extends object>(reply: Reply): Promise<T> {
  const text = reply instanceof Response ? await reply.text() : reply.json;
  const body = JSON.parse(text) as T | ErrorBody;
  if (!("error" in body)) return body;
  throw failureOf(body);
}

export async function streamOf(reply: Reply): Promise<ReadableStream<Uint8Array>> {
  if (!(reply instanceof Response)) throw failureOf(JSON.parse(reply.json) as ErrorBody);
  if (reply.ok && reply.body !== null) return reply.body;
  throw failureOf((await reply.json()) as ErrorBody);
}

function failureOf({ error }: ErrorBody): BerthError {
  const { code, message, hint, retryable: _retryable, ...facts } = error;
  return new BerthError(code, message, { facts, ...(hint === undefined ? {} : { hint }) });
}
