/**
 * Starts a real Berth under attack: two tenants, keys of both, and calls sent exactly as they are written.
 */
import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { Agent, request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { join } from "node:path";
import { asOther, type Identity, newData, removeData } from "../engine/test-engine.ts";
import { alive, processesNaming } from "../system/processes.ts";
import { type Server, startServer } from "../system/server.ts";

export const otherKey = "berth_other_tenant_of_the_security_tests";
export const allowedOrigin = "https://app.test";

const answersWithinMs = 60_000;

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

export type Answered = {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  // Tests read bodies of every form, errors included.
  body: Record<string, unknown> & { error?: Refusal; requestId?: string };
};

export type Refusal = { code: string; message: string; field?: string; retryable: boolean };

export class Attacked implements AsyncDisposable {
  readonly server: Server;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 16 });

  readonly #home: string | undefined;

  private constructor(server: Server, home?: string) {
    this.server = server;
    this.#home = home;
  }

  static async start(env: Record<string, string> = {}, as?: Identity): Promise<Attacked> {
    const digest = createHash("sha256").update(otherKey).digest("hex");
    const keys = { BERTH_API_KEYS: `other:${digest}`, BERTH_ORIGINS: allowedOrigin };
    const changes = as === "not root" && process.getuid?.() === 0;
    if (!changes) return new Attacked(await startServer({ env: { ...keys, ...env } }));
    // A home of its own, as a user has one: npm writes there, and root's is closed to it.
    const home = newData(as);
    const through = ["setpriv", ...asOther];
    const data = join(home, "data");
    const own = { ...keys, ...env, HOME: home };
    try {
      return new Attacked(await startServer({ env: own, data, through }), home);
    } catch (thrown) {
      removeData(home);
      throw thrown;
    }
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
            resolve({ status: statusCode, headers: headers, text: "", body: {} });
            return;
          }
          const chunks: Buffer[] = [];
          response.on("data", (chunk) => chunks.push(chunk));
          response.on("error", reject);
          response.on("end", () => {
            const text = Buffer.concat(chunks).toString();
            resolve({ status: statusCode, headers: headers, text, body: parsed(text) });
          });
        },
      );
      call.on("upgrade", (response, socket) => {
        socket.destroy();
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: "",
          body: {},
        });
      });
      call.setTimeout(answersWithinMs, () => call.destroy(new Error(`${method} ${path}: silence`)));
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

  /** Ends it, and names what is left of it; that must be nothing. */
  async end(): Promise<string[]> {
    const tree = this.server.processes();
    this.#agent.destroy();
    await this.server[Symbol.asyncDispose]();
    if (this.#home !== undefined) removeData(this.#home);
    return [...alive(tree), ...processesNaming(this.server.data)].map(({ command }) => command);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
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
