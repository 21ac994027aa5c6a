/** Calls the session routes of a real agent as the object would. */
import { expect } from "vitest";
import type { ErrorBody } from "../../../src/protocol/errors.ts";
import type { ExecResult } from "../../../src/protocol/exec.ts";
import type {
  Session,
  SessionExecInput,
  SessionInput,
  Sessions as SessionsPage,
} from "../../../src/protocol/session.ts";
import type { Agent } from "../agent.ts";

type CallOptions = { fence?: number; signal?: AbortSignal };

export type Refused = ErrorBody["error"] & { status: number };

export class Sessions {
  readonly agent: Agent;
  #count = 0;

  constructor(agent: Agent) {
    this.agent = agent;
  }

  request(path: string, method: string, body?: unknown, { fence, signal }: CallOptions = {}) {
    return this.agent.request(`/v1/sessions${path}`, {
      method,
      ...(fence === undefined ? {} : { headers: { "berth-fence": String(fence) } }),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
  }

  /** Creates a session and returns its id. */
  async make(call: SessionInput = {}, options?: CallOptions): Promise<string> {
    this.#count += 1;
    const id = call.id ?? `session-${this.#count}`;
    const response = await this.request("", "POST", { ...call, id }, options);
    expect(response.status, await response.clone().text()).toBe(201);
    return id;
  }

  run(
    id: string,
    call: string | (SessionExecInput & { execId?: string; keep?: boolean }),
    options?: CallOptions,
  ): Promise<Response> {
    const fields = typeof call === "string" ? { command: call } : call;
    const body = { execId: "exec1", requestId: "request1", ...fields };
    return this.request(`/${id}/exec`, "POST", body, options);
  }

  async exec(id: string, call: Parameters<Sessions["run"]>[1]): Promise<ExecResult> {
    const response = await this.run(id, call);
    const text = await response.text();
    expect(response.status, text).toBe(200);
    const result = JSON.parse(text);
    expect(result, text).not.toHaveProperty("error");
    return result as ExecResult;
  }

  /** The error of a call, which may also come after the heartbeat of a long response. */
  async refused(call: Promise<Response>): Promise<Refused> {
    const response = await call;
    const { error } = (await response.json()) as Partial<ErrorBody>;
    expect(error, "an error").toBeDefined();
    return { status: response.status, ...(error as ErrorBody["error"]) };
  }

  async view(id: string): Promise<Session> {
    return (await (await this.request(`/${id}`, "GET")).json()) as Session;
  }

  async list(): Promise<Session[]> {
    return ((await (await this.request("", "GET")).json()) as SessionsPage).sessions;
  }

  async end(id: string): Promise<void> {
    const response = await this.request(`/${id}`, "DELETE");
    expect(await response.json()).toEqual({ id, ended: true });
  }
}
