/** Calls the API for one caller of a wire, and reads its answers. */
import { type ErrorCode, errors } from "../protocol/error-codes.ts";
import type { Caller } from "../protocol/rights.ts";
import type { WireHost } from "./host.ts";

export class ApiCalls {
  readonly host: WireHost;
  readonly caller: Caller;

  constructor(host: WireHost, caller: Caller) {
    this.host = host;
    this.caller = caller;
  }

  /** Throws an ApiRefusal. */
  async send(path: string, init?: RequestInit): Promise<Response> {
    const response = await this.host.call(this.caller, path, init);
    if (response.status < 400) return response;
    throw await refusalOf(response);
  }

  async json<Answer>(
    method: string,
    path: string,
    body?: unknown,
    headers: HeadersInit = {},
  ): Promise<Answer> {
    const sent = new Headers(headers);
    if (body !== undefined) sent.set("content-type", "application/json");
    const init = {
      method,
      headers: sent,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
    const response = await this.send(path, init);
    const text = await response.text();
    const answer = JSON.parse(text === "" ? "null" : text);
    // A failure after the first byte of a slow answer.
    if (answer?.error !== undefined) throw await refusalOf(new Response(text, { status: 500 }));
    return answer;
  }

  /** Undefined for a refusal with this code. */
  async unless<Answer>(code: string, answer: Promise<Answer>): Promise<Answer | undefined> {
    try {
      return await answer;
    } catch (thrown) {
      if ((thrown as { code?: unknown }).code === code) return undefined;
      throw thrown;
    }
  }
}

/** A refusal of the API, before it has the form of a wire. */
export class ApiRefusal extends Error {
  readonly code: ErrorCode;
  readonly facts: Record<string, unknown>;

  constructor(code: ErrorCode, message: string, facts: Record<string, unknown>) {
    super(message);
    this.code = code;
    this.facts = facts;
  }
}

async function refusalOf(response: Response): Promise<ApiRefusal> {
  const body = (await response.json().catch(() => ({}))) as {
    error?: { code?: string; message?: string; hint?: string };
  };
  const {
    code = "internal",
    message = `status ${response.status}`,
    hint,
    ...facts
  } = body.error ?? {};
  const known = Object.hasOwn(errors, code) ? (code as ErrorCode) : "internal";
  return new ApiRefusal(known, hint === undefined ? message : `${message} ${hint}`, facts);
}
