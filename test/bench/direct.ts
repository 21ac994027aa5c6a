/** The baseline of a ratio: the same engine and agent in the same kind of jail, called without Worker and object. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { openDataFolder } from "../../container/launch/data-folder.js";
import { Engine } from "../../container/launch/engine.js";
import type { ExecResult } from "../../src/protocol/exec.ts";
import { agentHeaders, agentPaths } from "../../src/protocol/internal/agent-wire.ts";
import { type EngineStarted, enginePaths } from "../../src/protocol/internal/engine.ts";
import { Berth, requireSuccess } from "./berth.ts";
import type { Bench } from "./figure.ts";
import { Http } from "./http.ts";
import { treeOf } from "./processes.ts";
import { tracesOf } from "./traces.ts";

const containersMax = 64;

/** Starts an engine, which ends with the row. */
export async function startEngine(bench: Bench): Promise<{ engine: Engine; data: string }> {
  const data = bench.folder();
  const lock = openDataFolder(data);
  const engine = new Engine(data, containersMax);
  bench.ends(async () => {
    const before = treeOf(engine.child?.pid ?? 0);
    await engine.end();
    lock.release();
    return tracesOf(data, before);
  });
  await engine.start();
  return { engine, data };
}

export class DirectEngine {
  readonly http: Http;
  readonly #data: string;

  static async start(bench: Bench): Promise<DirectEngine> {
    const { engine, data } = await startEngine(bench);
    const http = new Http(engine.url, { authorization: `Bearer ${engine.secret}` });
    bench.closes(() => http.close());
    return new DirectEngine(http, data);
  }

  private constructor(http: Http, data: string) {
    this.http = http;
    this.#data = data;
  }

  /** The folder of the engine's trees and snapshots. */
  get engineData(): string {
    return join(this.#data, "engine");
  }

  async create(connections = 1): Promise<DirectSandbox> {
    const id = `b${randomBytes(12).toString("hex").slice(0, 23)}`;
    const secret = randomBytes(32).toString("base64url");
    const startId = randomBytes(8).toString("hex");
    const call = { startId, secret, env: {}, network: { internet: true } };
    const started = await this.http.json<EngineStarted>("POST", enginePaths.start(id), call);
    // The headers that an object sends.
    const headers = {
      authorization: `Bearer ${secret}`,
      [agentHeaders.incarnation]: started.incarnation,
      [agentHeaders.fence]: "0",
      [agentHeaders.requestId]: "bench",
    };
    return { id, http: new Http(started.agentUrl, headers, connections) };
  }

  async destroy({ id, http }: DirectSandbox): Promise<void> {
    http.close();
    await this.http.ok("POST", enginePaths.destroy(id), { files: "remove" });
  }
}

type DirectSandbox = { id: string; http: Http };

/** A sandbox of Berth, and one of an engine that is called directly. */
export async function startBothSides(bench: Bench, connections: number) {
  const berth = await Berth.start(bench);
  const engine = await DirectEngine.start(bench);
  const id = await berth.create();
  const { http } = await engine.create(connections);
  return { berth, id, path: `/v1/sandboxes/${id}`, direct: http };
}

/** Runs a command directly, which must succeed. */
export async function runDirectly({ http }: { http: Http }, body: string): Promise<void> {
  requireSuccess(await http.json<ExecResult>("POST", agentPaths.exec, body));
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
