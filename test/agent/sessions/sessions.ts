/**
 * Owns asking a real agent for sessions, as the object would.
 * Does not own the agent (agent.ts), nor what is asserted of it.
 */
import { expect } from "vitest";
import type { ErrorBody } from "../../../src/protocol/errors.ts";
import type { ExecResult } from "../../../src/protocol/exec.ts";
import type {
  Sessions as Listed,
  Session,
  SessionExecInput,
  SessionInput,
} from "../../../src/protocol/session.ts";
import type { Agent } from "../agent.ts";

type Fenced = { fence?: number; signal?: AbortSignal };

export type Refused = ErrorBody["error"] & { status: number };

export class Sessions {
  readonly agent: Agent;
  #made = 0;

  constructor(agent: Agent) {
    this.agent = agent;
  }

  request(path: string, method: string, body?: unknown, { fence, signal }: Fenced = {}) {
    return this.agent.request(`/v1/sessions${path}`, {
      method,
      ...(fence === undefined ? {} : { headers: { "berth-fence": String(fence) } }),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
  }

  /** A new one, by its id. */
  async make(call: SessionInput = {}, fenced?: Fenced): Promise<string> {
    this.#made += 1;
    const id = call.id ?? `session-${this.#made}`;
    const response = await this.request("", "POST", { ...call, id }, fenced);
    expect(response.status, await response.clone().text()).toBe(201);
    return id;
  }

  run(
    id: string,
    call: string | (SessionExecInput & { execId?: string; keep?: boolean }),
    fenced?: Fenced,
  ): Promise<Response> {
    const named = typeof call === "string" ? { command: call } : call;
    const body = { execId: "exec1", requestId: "request1", ...named };
    return this.request(`/${id}/exec`, "POST", body, fenced);
  }

  async exec(id: string, call: Parameters<Sessions["run"]>[1]): Promise<ExecResult> {
    const response = await this.run(id, call);
    const text = await response.text();
    expect(response.status, text).toBe(200);
    const result = JSON.parse(text);
    expect(result, text).not.toHaveProperty("error");
    return result as ExecResult;
  }

  /** An error tells itself also after the first spaces of a long answer. */
  async refused(asked: Promise<Response>): Promise<Refused> {
    const response = await asked;
    const { error } = (await response.json()) as Partial<ErrorBody>;
    expect(error, "an error").toBeDefined();
    return { status: response.status, ...(error as ErrorBody["error"]) };
  }

  async view(id: string): Promise<Session> {
    return (await (await this.request(`/${id}`, "GET")).json()) as Session;
  }

  async list(): Promise<Session[]> {
    return ((await (await this.request("", "GET")).json()) as Listed).sessions;
  }

  async end(id: string): Promise<void> {
    const response = await this.request(`/${id}`, "DELETE");
    expect(await response.json()).toEqual({ id, ended: true });
  }
}
