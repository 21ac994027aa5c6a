/** Calls the process routes of a real agent in tests, and reads logs as events or as bytes. */
import { randomBytes } from "node:crypto";
import { expect } from "vitest";
import type { ErrorBody } from "../../../src/protocol/errors.ts";
import { agentHeaders } from "../../../src/protocol/internal/agent-wire.ts";
import type {
  Process,
  Processes,
  ProcessInput,
  StdinTaken,
  Waited,
} from "../../../src/protocol/process.ts";
import type { Agent } from "../agent.ts";

export type Event = { event: string; id: number | undefined; data: Record<string, unknown> };
type Query = Record<string, string | number>;

export function newId(): string {
  return `p${randomBytes(6).toString("hex")}-${randomBytes(4).toString("hex")}`;
}

/** Calls the process routes of one agent. */
export class Asker {
  readonly agent: Agent;

  constructor(agent: Agent) {
    this.agent = agent;
  }

  post(call: ProcessInput | Record<string, unknown>, init: RequestInit = {}): Promise<Response> {
    const body = JSON.stringify({ id: newId(), ...call });
    return this.agent.request("/v1/processes", { method: "POST", body, ...init });
  }

  async start(call: ProcessInput & { id?: string }): Promise<Process> {
    return this.#json(await this.post(call), 201);
  }

  async sh(command: string, more: Partial<ProcessInput> = {}): Promise<Process> {
    return this.start({ command, ...more } as ProcessInput);
  }

  async get(id: string): Promise<Process> {
    return this.#json(await this.agent.request(`/v1/processes/${id}`));
  }

  async list(query: Query = {}): Promise<Process[]> {
    const answer = await this.agent.request(`/v1/processes${asText(query)}`);
    return (await this.#json<Processes>(answer)).processes;
  }

  async wait(id: string, query: Query = {}): Promise<Waited> {
    return this.#json(await this.agent.request(`/v1/processes/${id}/wait${asText(query)}`));
  }

  async exited(id: string): Promise<Process> {
    const { met, process } = await this.wait(id, { for: "exit", timeoutMs: 50_000 });
    expect(met, `process ${id} has exited`).toBe(true);
    return process;
  }

  async end(id: string): Promise<Process> {
    return this.#json(await this.agent.request(`/v1/processes/${id}`, { method: "DELETE" }));
  }

  async signal(id: string, signal?: string, to?: string): Promise<Process> {
    const body = JSON.stringify(signal === undefined ? {} : { signal, ...(to && { to }) });
    const init = { method: "POST", body };
    return this.#json(await this.agent.request(`/v1/processes/${id}/signal`, init));
  }

  stdin(id: string, body: string | Uint8Array, query: Query = {}): Promise<Response> {
    const path = `/v1/processes/${id}/stdin${asText(query)}`;
    return this.agent.request(path, { method: "POST", body: body as BodyInit });
  }

  async written(id: string, body: string | Uint8Array, query: Query = {}): Promise<StdinTaken> {
    return this.#json(await this.stdin(id, body, query));
  }

  logs(id: string, query: Query = {}, init: RequestInit = {}): Promise<Response> {
    return this.agent.request(`/v1/processes/${id}/logs${asText(query)}`, init);
  }

  /** Reads the response to its end. */
  async events(id: string, query: Query = {}, headers: Record<string, string> = {}) {
    const answer = await this.logs(id, query, { headers });
    expect(answer.headers.get("content-type")).toBe("text/event-stream");
    return parseEvents(await answer.text());
  }

  raw(id: string, query: Query, init: RequestInit = {}): Promise<Response> {
    const headers = { ...init.headers, accept: "application/octet-stream" };
    return this.logs(id, query, { ...init, headers });
  }

  async bytes(id: string, stream: "stdout" | "stderr", query: Query = {}): Promise<Buffer> {
    const answer = await this.raw(id, { stream, ...query });
    expect(answer.status).toBe(200);
    return Buffer.from(await answer.arrayBuffer());
  }

  async #json<T>(answer: Response, status = 200): Promise<T> {
    const text = await answer.text();
    expect(answer.status, text).toBe(status);
    return JSON.parse(text) as T;
  }
}

export async function refusalOf(answer: Response) {
  const { error } = (await answer.json()) as ErrorBody;
  return { ...error, status: answer.status } as ErrorBody["error"] & { status: number };
}

export function parseEvents(text: string): Event[] {
  return text
    .split("\n\n")
    .filter((block) => block !== "" && !block.startsWith(":"))
    .map((block) => {
      const fields = Object.fromEntries(
        block.split("\n").map((line) => {
          const colon = line.indexOf(": ");
          return [line.slice(0, colon), line.slice(colon + 2)];
        }),
      );
      return {
        event: fields.event ?? "",
        id: fields.id === undefined ? undefined : Number(fields.id),
        data: JSON.parse(fields.data ?? "{}") as Record<string, unknown>,
      };
    });
}

/** The bytes of the output events, of one stream or of both. */
export function outputOf(events: Event[], stream?: "stdout" | "stderr"): Buffer {
  return Buffer.concat(
    events
      .filter(({ event, data }) => event === "output" && (stream ?? data.stream) === data.stream)
      .map(({ data }) => Buffer.from(String(data.data), "base64")),
  );
}

/** The headers by which the object passes a reader id on. */
export function asReader(id: string): { headers: Record<string, string> } {
  return { headers: { [agentHeaders.reader]: id } };
}

function asText(query: Query): string {
  return `?${new URLSearchParams(Object.entries(query).map(([name, value]) => [name, `${value}`]))}`;
}
