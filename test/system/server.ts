/**
 * Starts a real Berth for one test: `npm start` on a free port with a data folder of its own.
 * The caller stops it, or uses `await using`. See shared-server.ts for tests that need no server of their own.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../../container/launch/paths.js";
import { until } from "../until.ts";
import { alive, type ProcessInfo, treeOf } from "./processes.ts";
import { secretsWritten } from "./server/log-noise.ts";

/** BERTH_TEST_SCRIPT=dev runs tests against `wrangler dev`, such as those of browsers. */
const defaultScript = process.env.BERTH_TEST_SCRIPT === "dev" ? "dev" : "start";
const readyWithinMs = defaultScript === "dev" ? 180_000 : 90_000;
const endsWithinMs = 90_000;

export type Output = { stdout: string; stderr: string };
export type Ended = Output & { code: number | null; signal: string | null };
export type StartOptions = {
  /** The folder of an earlier server; it is not removed at the end. */
  data?: string;
  args?: string[];
  env?: Record<string, string>;
  /** Where the checkout is. */
  cwd?: string;
  readyWithinMs?: number;
  /** A program that runs npm, with its arguments, for example as another user. */
  through?: readonly string[];
  script?: "start" | "dev";
};

/** Runs the launcher through npm. `ended` resolves with its output when it ends. */
export function launch({
  args = [],
  env = {},
  cwd = root,
  script = defaultScript,
  through = [],
}: StartOptions): Launched {
  const command = [...through, "npm", "run", "--silent", script, "--", ...args];
  // The server ends even where the process of the test is killed and cannot end it.
  const child = spawn("setpriv", ["--pdeathsig", "TERM", "--", ...command], {
    cwd,
    // Commands of the user who runs the tests must not find this server.
    env: cleanEnvironment({ XDG_RUNTIME_DIR: join(tmpdir(), "berth-e2e-runtime"), ...env }),
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const output: Output = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk) => {
    output.stdout += chunk;
  });
  child.stderr.on("data", (chunk) => {
    output.stderr += chunk;
  });
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ ...output, code, signal }));
  });
  return { child, output, ended };
}

export type Launched = { child: ChildProcess; output: Output; ended: Promise<Ended> };

export async function startServer(options: StartOptions = {}): Promise<Server> {
  const data = options.data ?? mkdtempSync(join(tmpdir(), "berth-e2e-"));
  const args = ["--port", "0", "--data", data, ...(options.args ?? [])];
  const launched = launch({ ...options, args });
  let over = false;
  launched.ended.then(() => {
    over = true;
  });
  const ready = () => /^ready on (http:\/\/\S+)$/m.exec(launched.output.stdout)?.[1];
  const limit = options.readyWithinMs ?? readyWithinMs;
  await until("ready", () => over || ready() !== undefined, limit).catch(async (thrown) => {
    await endNow(launched);
    throw thrown;
  });
  const url = ready();
  if (url === undefined) throw new Error(`npm start ended: ${launched.output.stderr}`);
  return new Server(url, data, launched, options.data === undefined);
}

export type CallOptions = {
  headers?: Record<string, string>;
  /** Default: a minute. */
  signal?: AbortSignal;
};

export type ServerAddress = {
  url: string;
  /** The key of the tenant that the calls are made for. */
  key: string;
  /** The data folder. */
  data: string;
  /** The pid of npm, the root of everything that the server runs. */
  pid: number;
};

export type RecordedProcess = { name: string; pid: number };

/** Calls to a server that runs, and a view of its processes. */
export class RunningServer {
  readonly url: string;
  readonly key: string;
  readonly data: string;
  readonly pid: number;

  constructor({ url, key, data, pid }: ServerAddress) {
    this.url = url;
    this.key = key;
    this.data = data;
    this.pid = pid;
  }

  /** A call with the key; the body is JSON. */
  async call(
    method: string,
    path: string,
    body?: unknown,
    { headers = {}, signal = AbortSignal.timeout(60_000) }: CallOptions = {},
  ): Promise<Answer> {
    const authorization = `Bearer ${this.key}`;
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: { authorization, "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal,
    });
    return { status: response.status, body: (await response.json()) as Answer["body"] };
  }

  /** Makes a running sandbox and returns its id. */
  async create(body: Record<string, unknown> = {}): Promise<string> {
    const made = await this.call("POST", "/v1/sandboxes", { waitMs: 20_000, ...body });
    const id = String(made.body.id);
    let { state } = made.body;
    // The call itself waits only for a limited time.
    await until("it has started", async () => {
      if (state === "starting") ({ state } = (await this.call("GET", `/v1/sandboxes/${id}`)).body);
      return state !== "starting";
    });
    if (made.status !== 201 || state !== "running") {
      throw new Error(`create answered ${made.status} ${JSON.stringify(made.body)}, is ${state}`);
    }
    return id;
  }

  async exec(id: string, command: string): Promise<Answer> {
    return await this.call("POST", `/v1/sandboxes/${id}/exec`, { command });
  }

  /** npm, the launcher, and everything below: workerd, the engine, agents and their commands. */
  processes(): ProcessInfo[] {
    return treeOf(this.pid);
  }

  /** The files of the objects. An object has some of its own; journal files come and go as it wakes and sleeps. */
  objectFiles(): string[] {
    return readdirSync(join(this.data, "objects"), { recursive: true })
      .map(String)
      .filter((name) => name.endsWith(".sqlite"))
      .sort();
  }

  /** What the launcher has recorded for the next start; `npm run dev` does so in `dev`. */
  processRecord(folder = ""): RecordedProcess[] {
    const record = readFileSync(join(this.data, folder, "processes.json"), "utf8");
    return (JSON.parse(record) as { processes: RecordedProcess[] }).processes;
  }

  /** The process whose arguments contain the text, e.g. `workerd serve`. */
  processOf(text: string): ProcessInfo {
    const found = this.processes().find(({ command }) => command.includes(text));
    if (found === undefined) throw new Error(`no process of this server runs ${text}`);
    return found;
  }

  /** The agent of the sandbox's current incarnation: the only child of the process that the engine has recorded. */
  agentOf(id: string): ProcessInfo {
    const record = readFileSync(join(this.data, "engine", "live", id), "utf8");
    const { outer } = JSON.parse(record) as { outer: { pid: number } };
    const [, agent] = treeOf(outer.pid);
    if (agent === undefined) throw new Error(`sandbox ${id} has no agent`);
    return agent;
  }

  get workerd(): ProcessInfo {
    return this.processOf("workerd serve");
  }

  get engine(): ProcessInfo {
    return this.processOf("container/engine/main.ts");
  }

  get launcher(): ProcessInfo {
    const found = this.processes().find(({ command }) =>
      /^\S*node \S*container\/launch\/start\.js/.test(command),
    );
    if (found === undefined) throw new Error("the launcher does not run");
    return found;
  }
}

/** A server that belongs to the test that started it. */
export class Server extends RunningServer implements AsyncDisposable {
  readonly launched: Launched;
  readonly ownsData: boolean;

  constructor(url: string, data: string, launched: Launched, ownsData: boolean) {
    const key = readFileSync(join(data, "key"), "utf8").trim();
    super({ url, data, key, pid: launched.child.pid ?? -1 });
    this.launched = launched;
    this.ownsData = ownsData;
  }

  signal(signal: NodeJS.Signals): void {
    this.launched.child.kill(signal);
  }

  async stop(): Promise<Ended> {
    this.signal("SIGTERM");
    return await this.ended();
  }

  async ended(): Promise<Ended> {
    const late = new Promise<never>((_, reject) => {
      setTimeout(() => reject(new Error("the server does not end")), endsWithinMs).unref();
    });
    return await Promise.race([this.launched.ended, late]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const tree = this.processes();
    this.signal("SIGTERM");
    await this.ended().catch(() => endNow(this.launched));
    let written: string[] = [];
    await until("its processes are gone", () => alive(tree).length === 0).finally(() => {
      written = secretsWritten(this.data, this.launched.output);
      if (this.ownsData) rmSync(this.data, { recursive: true, force: true });
    });
    if (written.length > 0)
      throw new Error(`the server has written secrets: ${written.join(", ")}`);
  }
}

export type Answer = {
  status: number;
  // Tests read bodies of every form, errors included.
  body: Record<string, unknown> & { error?: { code: string; message: string } };
};

async function endNow({ child, ended }: Launched): Promise<void> {
  for (const { pid } of treeOf(child.pid ?? -1).reverse()) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It ended with the previous one.
    }
  }
  await ended;
}

/** The environment of a user's shell, without variables of npm and the test runner. */
export function cleanEnvironment(more: Record<string, string>): Record<string, string> {
  const own = Object.entries(process.env).filter(
    ([name, value]) =>
      value !== undefined && !/^(npm_|BERTH_|VITEST|NODE_|INIT_CWD$|TEST$|CI$)/.test(name),
  ) as [string, string][];
  const env = Object.fromEntries(own);
  const path = (env.PATH ?? "").split(":").filter((part) => !part.includes("node_modules"));
  return { ...env, PATH: path.join(":"), ...more };
}
