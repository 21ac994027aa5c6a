/** One request to an agent in memory: its route, body and fence, and the forms of its responses. */
import { BerthError, errorBody, errors } from "../../../src/protocol/errors.ts";
import { agentHeaders } from "../../../src/protocol/internal/agent.ts";
import type { FakeAgent } from "./agent.ts";

export class AgentCall {
  readonly request: Request;
  readonly url: URL;
  readonly method: string;
  /** The path below the resource. */
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

  get query(): URLSearchParams {
    return this.url.searchParams;
  }

  /** For a gated call, in the same synchronous step in which its work starts: no higher fence can come in between. */
  admitFence(): number {
    const fence = Number(this.request.headers.get(agentHeaders.fence) ?? 0);
    this.#agent.admitFence(fence);
    return fence;
  }

  async body<T>(): Promise<T> {
    const body = await this.request.json();
    // The agent may have died in the meantime: nothing starts then.
    if (this.#agent.ended) throw new TypeError("connection reset");
    return body as T;
  }

  json(answer: unknown, status = 200): Response {
    return this.text(JSON.stringify(answer), status);
  }

  /** The real agent announces the length of every response that it has completely. */
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
