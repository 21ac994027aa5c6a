/** Starts a real Berth under attack: two tenants, keys of both, and calls sent exactly as they are written. */
import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { Agent, request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, expect } from "vitest";
import { asOther, type Identity, newData, removeData } from "../engine/test-engine.ts";
import { alive, processesNaming } from "../system/processes.ts";
import { type Server, startServer } from "../system/server.ts";

export const otherKey = "berth_other_tenant_of_the_security_tests";
export const allowedOrigin = "https://app.test";

const responseTimeoutMs = 60_000;

export type Sent = {
  method: string;
  path: string;
  /** `null`: without a key. */
  key?: string | null;
  headers?: Record<string, string>;
  body?: string | Buffer;
  /** Disconnects once a successful response begins, because it would continue for as long as it is read. */
  leaves?: boolean;
};

/** Calls for `send` in short form. */
export const get = (path: string): Sent => ({ method: "GET", path });
export const post = (path: string, json: unknown, headers: Sent["headers"] = {}): Sent => ({
  ...{ method: "POST", path, body: JSON.stringify(json), headers },
});
export const put = (path: string, type: string, body: string | Buffer, headers = {}): Sent => ({
  ...{ method: "PUT", path, body, headers: { "content-type": type, ...headers } },
});

export type Answered = {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  // Tests read bodies of every form, errors included.
  body: Record<string, unknown> & { error?: Refusal; requestId?: string };
};

export type Refusal = { code: string; message: string; field?: string; retryable: boolean };

export class Attacked {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 16 });
  #server: Server | undefined;
  #home: string | undefined;

  private constructor() {}

  /** One server for all tests of a `describe`, of which nothing may be left. It runs once the hooks have run. */
  static shared(env: Record<string, string> = {}, as?: Identity): Attacked {
    const berth = new Attacked();
    beforeAll(() => berth.#start(env, as));
    afterAll(async () => expect(await berth.#end()).toEqual([]));
    return berth;
  }

  async #start(env: Record<string, string>, as: Identity | undefined): Promise<void> {
    const digest = createHash("sha256").update(otherKey).digest("hex");
    const own = { BERTH_API_KEYS: `other:${digest}`, BERTH_ORIGINS: allowedOrigin, ...env };
    if (as !== "not root" || process.getuid?.() !== 0) {
      this.#server = await startServer({ env: own });
      return;
    }
    // A home of its own, as a user has one: npm writes there, and root's is closed to it.
    const home = newData(as);
    try {
      const data = join(home, "data");
      const through = ["setpriv", ...asOther];
      this.#server = await startServer({ env: { ...own, HOME: home }, data, through });
      this.#home = home;
    } catch (thrown) {
      removeData(home);
      throw thrown;
    }
  }

  get server(): Server {
    if (this.#server === undefined) throw new Error("the server has not been started");
    return this.#server;
  }

  get host(): string {
    return new URL(this.server.url).host;
  }

  /** Adds only the key, and a content type and length for a body; normalises nothing. */
  send({ method, path, key, headers = {}, body, leaves = false }: Sent): Promise<Answered> {
    const sent: Record<string, string> = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
    );
    if (key !== null) sent.authorization ??= `Bearer ${key ?? this.server.key}`;
    if (body !== undefined) {
      sent["content-type"] ??= "application/json";
      sent["content-length"] ??= String(Buffer.byteLength(body));
    }
    // An upgrade that is granted would take its connection along.
    if (sent.upgrade !== undefined) sent.connection ??= "Upgrade";
    const { hostname, port } = new URL(this.server.url);
    return new Promise((resolve, reject) => {
      const call = httpRequest(
        { hostname, port, method, path, headers: sent, agent: this.#agent },
        (response) => {
          const { statusCode = 0, headers } = response;
          if (leaves && statusCode < 400) {
            response.destroy();
            resolve({ status: statusCode, headers, text: "", body: {} });
            return;
          }
          const chunks: Buffer[] = [];
          response.on("data", (chunk) => chunks.push(chunk));
          response.on("error", reject);
          response.on("end", () => {
            const text = Buffer.concat(chunks).toString();
            resolve({ status: statusCode, headers, text, body: parsed(text) });
          });
        },
      );
      call.on("upgrade", (response, socket) => {
        socket.destroy();
        const { statusCode = 0, headers } = response;
        resolve({ status: statusCode, headers, text: "", body: {} });
      });
      call.setTimeout(responseTimeoutMs, () =>
        call.destroy(new Error(`${method} ${path}: silence`)),
      );
      call.on("error", reject);
      call.end(body);
    });
  }

  /** A call with a JSON body and an answer that must be the one that is meant. */
  async ok(
    method: string,
    path: string,
    json?: unknown,
    more: Pick<Sent, "key" | "headers"> = {},
  ): Promise<Answered["body"]> {
    const body = json === undefined ? {} : { body: JSON.stringify(json) };
    const answer = await this.send({ method, path, ...body, ...more });
    if (answer.status >= 300) {
      throw new Error(`${method} ${path} answered ${answer.status} ${answer.text}`);
    }
    return answer.body;
  }

  /** A running sandbox, or with `start: false` a paused one; its id. */
  async create(call: Record<string, unknown> = {}, key?: string): Promise<string> {
    const body = { waitMs: 20_000, ...call };
    const made = await this.ok("POST", "/v1/sandboxes", body, key === undefined ? {} : { key });
    return String(made.id);
  }

  /** Output of one command, its streams as text. */
  async exec(id: string, call: Record<string, unknown>) {
    const result = await this.ok("POST", `/v1/sandboxes/${id}/exec`, call);
    return result as {
      exitCode: number | null;
      signal: string | null;
      stdout: string;
      stderr: string;
      timedOut: boolean;
      error?: unknown;
      incarnation: string;
    };
  }

  /** The containers that live, by the engine's own notes. */
  containers(): string[] {
    return readdirSync(join(this.server.data, "engine", "live")).sort();
  }

  /** The objects that were ever addressed: each has a file. */
  objects(): string[] {
    return readdirSync(join(this.server.data, "objects"), { recursive: true })
      .map(String)
      .filter((name) => name.endsWith(".sqlite"))
      .sort();
  }

  /** Returns what is left of it. */
  async #end(): Promise<string[]> {
    const tree = this.server.processes();
    this.#agent.destroy();
    await this.server[Symbol.asyncDispose]();
    if (this.#home !== undefined) removeData(this.#home);
    return [...alive(tree), ...processesNaming(this.server.data)].map(({ command }) => command);
  }
}

function parsed(text: string): Answered["body"] {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    // Not every response is JSON; a test that needs one misses its fields.
    return {};
  }
}
