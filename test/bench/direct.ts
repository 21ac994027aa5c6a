/**
 * The baseline of a ratio: the same engine and agent in the same kind of jail, called without Worker and object.
 */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { openDataFolder } from "../../container/launch/data-folder.js";
import { Engine } from "../../container/launch/engine.js";
import type { ExecResult } from "../../src/protocol/exec.ts";
import { agentHeaders, agentPaths } from "../../src/protocol/internal/agent-wire.ts";
import { type EngineStarted, enginePaths } from "../../src/protocol/internal/engine.ts";
import type { Bench } from "./figure.ts";
import { Http } from "./http.ts";
import { treeOf } from "./processes.ts";
import { tracesOf } from "./traces.ts";

const containersMax = 64;

export class DirectEngine {
  readonly #engine: Engine;
  readonly #data: string;
  readonly #releaseLock: () => void;
  #http: Http | undefined;

  static async start(bench: Bench): Promise<DirectEngine> {
    const data = bench.folder();
    const lock = openDataFolder(data);
    const engine = new Engine(data, containersMax);
    const direct = new DirectEngine(engine, data, () => lock.release());
    bench.ends(() => direct.end());
    await engine.start();
    direct.#http = new Http(engine.url, { authorization: `Bearer ${engine.secret}` });
    return direct;
  }

  private constructor(engine: Engine, data: string, releaseLock: () => void) {
    this.#engine = engine;
    this.#data = data;
    this.#releaseLock = releaseLock;
  }

  /** The folder of the engine's trees and snapshots. */
  get engineData(): string {
    return join(this.#data, "engine");
  }

  get http(): Http {
    if (this.#http === undefined) throw new Error("not ready yet");
    return this.#http;
  }

  async create(connections = 1): Promise<DirectSandbox> {
    const id = `b${randomBytes(12).toString("hex").slice(0, 23)}`;
    const secret = randomBytes(32).toString("base64url");
    const startId = randomBytes(8).toString("hex");
    const call = { startId, secret, env: {}, network: { internet: true } };
    const { status, text } = await this.http.call(
      "POST",
      enginePaths.start(id),
      JSON.stringify(call),
    );
    if (status !== 200) throw new Error(`the engine returned ${status}: ${text}`);
    const { agentUrl, incarnation } = JSON.parse(text) as EngineStarted;
    return new DirectSandbox(id, agentUrl, { secret, incarnation, connections });
  }

  async destroy(sandbox: DirectSandbox): Promise<void> {
    sandbox.http.close();
    const body = JSON.stringify({ files: "remove" });
    const { status, text } = await this.http.call("POST", enginePaths.destroy(sandbox.id), body);
    if (status !== 204) throw new Error(`the engine returned ${status}: ${text}`);
  }

  /** Ends it and returns a description of everything that is left. */
  async end(): Promise<string[]> {
    const before = treeOf(this.#engine.child?.pid ?? 0);
    this.#http?.close();
    await this.#engine.end();
    this.#releaseLock();
    return tracesOf(this.#data, before);
  }
}

class DirectSandbox {
  readonly id: string;
  readonly http: Http;

  constructor(
    id: string,
    url: string,
    {
      secret,
      incarnation,
      connections,
    }: { secret: string; incarnation: string; connections: number },
  ) {
    this.id = id;
    // The headers that an object sends.
    const headers = {
      authorization: `Bearer ${secret}`,
      [agentHeaders.incarnation]: incarnation,
      [agentHeaders.fence]: "0",
      [agentHeaders.requestId]: "bench",
    };
    this.http = new Http(url, headers, connections);
  }

  async exec(body: string): Promise<ExecResult> {
    const { status, text } = await this.http.call("POST", agentPaths.exec, body);
    if (status !== 200) throw new Error(`the agent returned ${status}: ${text}`);
    return JSON.parse(text) as ExecResult;
  }
}

/** The body that an object would send to the agent. */
export function agentCall(program: { command: string } | { argv: string[] }): string {
  return JSON.stringify({
    ...program,
    timeoutMs: 60_000,
    maxOutputBytes: 1024 * 1024,
    encoding: "utf8",
    execId: "xbench",
    requestId: "bench",
  });
}
