/**
 * Owns one request to an agent in memory as its nouns see it: what is asked, the fence, and how answers are written.
 */

import { BerthError, errorBody, errors } from "../../../src/protocol/errors.ts";
import { agentHeaders } from "../../../src/protocol/internal/agent.ts";
import type { FakeAgent } from "./agent.ts";

export class Call {
  readonly request: Request;
  readonly url: URL;
  readonly method: string;
  /** What follows the noun's own path. */
  readonly rest: string[];
  readonly headers: Record<string, string>;
  readonly #agent: FakeAgent;

  constructor(agent: FakeAgent, request: Request) {
    this.#agent = agent;
    this.request = request;
    this.url = new URL(request.url);
    this.method = request.method;
    this.rest = this.url.pathname.split("/").slice(3);
    this.headers = {
      [agentHeaders.incarnation]: agent.incarnation,
      [agentHeaders.protocol]: String(agent.protocol),
    };
  }

  /** Of a gated call, in the same piece in which its work begins: nothing can raise the fence in between. */
  pass(): number {
    const fence = Number(this.request.headers.get(agentHeaders.fence) ?? 0);
    this.#agent.pass(fence);
    return fence;
  }

  async body<T>(): Promise<T> {
    const body = await this.request.json();
    // It may have died meanwhile: nothing begins then.
    if (this.#agent.ended) throw new TypeError("connection reset");
    return body as T;
  }

  json(answer: unknown, status = 200): Response {
    return this.text(JSON.stringify(answer), status);
  }

  /** The real agent names the length of every answer that it has whole. */
  text(body: string, status = 200): Response {
    const length = String(new TextEncoder().encode(body).length);
    const headers = {
      ...this.headers,
      "content-type": "application/json",
      "content-length": length,
    };
    return new Response(body, { status, headers });
  }

  stream(body: ReadableStream<Uint8Array>, headers: Record<string, string>): Response {
    return new Response(body, { headers: { ...this.headers, ...headers } });
  }

  refuse(error: BerthError): Response {
    const requestId = this.request.headers.get(agentHeaders.requestId) ?? "none";
    return this.json(errorBody(error, requestId), errors[error.code].status);
  }
}

export function noRoute(): BerthError {
  return new BerthError("not_found", "No such route.");
}
