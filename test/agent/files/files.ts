/**
 * Calls the file routes of a real agent in tests, and checks each response against its schema.
 */
import { once } from "node:events";
import { readdirSync, readlinkSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect } from "vitest";
import type { z } from "zod";
import { errorBodySchema } from "../../../src/protocol/errors.ts";
import { fileSchema, filesSchema, removedSchema } from "../../../src/protocol/file.ts";
import { until } from "../../until.ts";
import type { Agent } from "../agent.ts";
import { completeCall } from "../checked-call.ts";

type Query = Record<string, string | number | boolean>;

export class Files {
  readonly agent: Pick<Agent, "request">;

  constructor(agent: Pick<Agent, "request">) {
    this.agent = agent;
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Response> {
    return this.agent.request(`/v1/files?${queryOf({ path })}`, { headers });
  }

  async text(path: string): Promise<string> {
    const response = await this.get(path);
    const text = await response.text();
    expect(response.status, text).toBe(200);
    return text;
  }

  send(path: string, body: RequestInit["body"], more: Query = {}, init: RequestInit = {}) {
    const query = queryOf({ path, ...more });
    return this.agent.request(`/v1/files?${query}`, { ...init, method: "PUT", body: body ?? null });
  }

  put(path: string, body: RequestInit["body"], more: Query = {}, init: RequestInit = {}) {
    return read(this.send(path, body, more, init), fileSchema);
  }

  remove(path: string, more: Query = {}) {
    const query = queryOf({ path, ...more });
    return read(this.agent.request(`/v1/files?${query}`, { method: "DELETE" }), removedSchema);
  }

  stat(path: string) {
    return read(this.agent.request(`/v1/files/stat?${queryOf({ path })}`), fileSchema);
  }

  list(path: string, more: Query = {}) {
    return read(this.agent.request(`/v1/files/list?${queryOf({ path, ...more })}`), filesSchema);
  }

  /** All pages of a list, each with the cursor of the one before. */
  async *pages(path: string, options: Query) {
    let more: { cursor?: string } | undefined = {};
    while (more !== undefined) {
      const { value } = await this.list(path, { ...options, ...more });
      yield value?.files ?? [];
      const cursor = value?.nextCursor ?? null;
      more = cursor === null ? undefined : { cursor };
    }
  }

  mkdir(call: Record<string, unknown>) {
    return read(this.#post("mkdir", call), fileSchema);
  }

  move(call: Record<string, unknown>) {
    return read(this.#post("move", call), fileSchema);
  }

  #post(what: string, call: Record<string, unknown>): Promise<Response> {
    const path = `/v1/files/${what}`;
    const body = completeCall(path, JSON.stringify(call));
    return this.agent.request(path, { method: "POST", body });
  }
}

/**
 * Checks after the tests of a block that no descriptor and nothing unfinished is left. `warmUp` opens first what the agent
 * keeps open. Returns a function that waits until all other descriptors are closed.
 */
export function expectNothingLeft(
  agent: Agent,
  warmUp: () => Promise<unknown>,
): () => Promise<void> {
  let descriptors = 0;
  const closed = () => until("all are closed", () => agent.descriptors() <= descriptors + 2);
  beforeAll(async () => {
    await warmUp();
    descriptors = agent.descriptors();
  });
  afterAll(async () => {
    await closed();
    expect(unfinished(agent)).toEqual([]);
  });
  return closed;
}

/** Lists what is being written below the workspace: files without a name, and temporary names. */
export function unfinished({ pid, workspace }: Agent): string[] {
  const names = readdirSync(workspace).filter((name) => name.startsWith(".berth-"));
  const nameless = readdirSync(`/proc/${pid}/fd`)
    .map((fd) => leadsTo(`/proc/${pid}/fd/${fd}`))
    .filter((file) => file.startsWith(workspace) && file.endsWith(" (deleted)"));
  return [...names, ...nameless];
}

function leadsTo(link: string): string {
  try {
    return readlinkSync(link);
  } catch {
    return "";
  }
}

/** Downloads something, and reads only its beginning. */
export async function unread({ port, secret }: Agent, path: string): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  const head = `host: agent\r\nauthorization: Bearer ${secret}\r\naccept: */*\r\n\r\n`;
  socket.write(`GET ${path} HTTP/1.1\r\n${head}`);
  await once(socket, "data");
  socket.pause();
  return socket;
}

export function queryOf(query: Query): string {
  return new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
  ).toString();
}

type Read<T> = { status: number; value: T; code: undefined; error: undefined };
type Refused = {
  status: number;
  value: undefined;
  code: string;
  error: z.infer<typeof errorBodySchema>["error"];
};

/** Parses a response by its schema, or returns the code of the error. */
export async function read<T>(
  sent: Promise<Response>,
  schema: z.ZodType<T>,
): Promise<Read<T> | Refused> {
  const response = await sent;
  const { status } = response;
  const body: unknown = await response.json();
  if (status < 300) return { status, value: schema.parse(body), code: undefined, error: undefined };
  const { error } = errorBodySchema.parse(body);
  return { status, value: undefined, code: error.code, error };
}

export async function codeOf(response: Response): Promise<string> {
  return errorBodySchema.parse(await response.json()).error.code;
}
