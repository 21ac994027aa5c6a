/**
 * Starts, calls and ends a complete Berth of one machine under measurement. See traces.ts for the check that nothing
 * is left.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { root, tools } from "../../container/launch/paths.js";
import type { ExecResult } from "../../src/protocol/exec.ts";
import type { Sandbox } from "../../src/protocol/sandbox.ts";
import type { Bench } from "./figure.ts";
import { Http } from "./http.ts";
import { nameOf, treeOf } from "./processes.ts";
import { tracesOf } from "./traces.ts";

const readyMs = 60_000;
const endMs = 60_000;
const createWaitMs = 25_000;
const connections = 64;

export class Berth {
  readonly data: string;
  readonly #child: ChildProcessByStdio<null, Readable, null>;
  readonly #ended: Promise<void>;
  #url = "";
  #http: Http | undefined;

  /** With the data folder of one that has ended, it continues with its sandboxes. */
  static async start(bench: Bench, data = bench.folder()): Promise<Berth> {
    const berth = new Berth(data);
    bench.ends(() => berth.end());
    berth.#url = await berth.#ready();
    berth.#http = berth.connect(connections);
    return berth;
  }

  private constructor(data: string) {
    this.data = data;
    const start = join(root, "container/launch/start.js");
    const args = ["--pdeathsig", "TERM", "--", tools.node, start, "--port", "0", "--data", data];
    this.#child = spawn("setpriv", args, { cwd: root, stdio: ["ignore", "pipe", "ignore"] });
    this.#ended = new Promise((resolve) => this.#child.once("exit", () => resolve()));
  }

  get http(): Http {
    if (this.#http === undefined) throw new Error("not ready yet");
    return this.#http;
  }

  /** Opens further connections; the caller closes them. */
  connect(count: number): Http {
    return new Http(this.#url, { authorization: `Bearer ${this.key}` }, count);
  }

  get key(): string {
    return readFileSync(join(this.data, "key"), "utf8").trim();
  }

  /** The launcher, workerd, the engine and every sandbox. */
  processes(): number[] {
    return treeOf(this.#child.pid ?? 0);
  }

  get workerd(): number {
    const found = this.processes().find((pid) => nameOf(pid) === "workerd");
    if (found === undefined) throw new Error("workerd is not running");
    return found;
  }

  /** The agent: the only child of the outer process that the engine has recorded. */
  agentOf(id: string): number {
    const record = JSON.parse(readFileSync(join(this.data, "engine/live", id), "utf8"));
    const [, agent] = treeOf((record as { outer: { pid: number } }).outer.pid);
    if (agent === undefined) throw new Error(`sandbox ${id} has no agent`);
    return agent;
  }

  /** Returns once the sandbox is running, unless `waitMs` is shorter. */
  async create(waitMs = createWaitMs): Promise<string> {
    const { id, state } = await this.http.json<Sandbox>("POST", "/v1/sandboxes", { waitMs });
    if (waitMs > 0 && state !== "running") throw new Error(`the new sandbox ${id} is ${state}`);
    return id;
  }

  exec(id: string, body: string | object): Promise<ExecResult> {
    return this.http.json("POST", `/v1/sandboxes/${id}/exec`, body);
  }

  /** Requires that the command succeeds. */
  async run(id: string, body: string | object): Promise<void> {
    requireSuccess(await this.exec(id, body));
  }

  async destroy(id: string): Promise<void> {
    await this.http.ok("DELETE", `/v1/sandboxes/${id}`);
  }

  /** Ends it as Ctrl-C does and returns a description of everything that is left. */
  async end(): Promise<string[]> {
    const before = this.processes();
    this.#http?.close();
    this.#child.kill("SIGTERM");
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), endMs);
    await this.#ended;
    clearTimeout(timer);
    if (this.#child.signalCode === "SIGKILL") {
      throw new Error(`Berth did not end within ${endMs} ms`);
    }
    return tracesOf(this.data, before);
  }

  async #ready(): Promise<string> {
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), readyMs);
    const lines = createInterface({ input: this.#child.stdout });
    const url = await new Promise<string | undefined>((resolve) => {
      lines.on("line", (text) => {
        const ready = /^ready on (\S+)$/.exec(text)?.[1];
        if (ready !== undefined) resolve(ready);
      });
      lines.once("close", () => resolve(undefined));
    });
    clearTimeout(timer);
    if (url === undefined) throw new Error(`Berth did not start; see ${join(this.data, "logs")}`);
    return url;
  }
}

export function requireSuccess({ exitCode, stderr }: ExecResult): void {
  if (exitCode !== 0) throw new Error(`a command ended with ${exitCode}: ${stderr}`);
}
