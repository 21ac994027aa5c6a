/**
 * Starts real engines for tests, as root and as another user, each on its own data folder, and finds what they leave.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import { childrenOf, descendantsOf } from "../../container/engine/processes.ts";
import { paths, tools } from "../../container/launch/paths.js";
import { type ExecResult, execResultSchema } from "../../src/protocol/exec.ts";
import type { Size } from "../../src/protocol/fields/size.ts";
import { agentHeaders, agentPaths } from "../../src/protocol/internal/agent.ts";
import { engineRuntime } from "../../src/runtime/engine.ts";
import type { ContainerRuntime, Started } from "../../src/runtime/runtime.ts";
import { processesNaming } from "../system/processes.ts";
import { until } from "../until.ts";

export type Identity = "root" | "not root";

/** A UID without a login that owns nothing. */
const otherUid = 23_456;
const secret = "secret-of-the-engine-under-test-0123456789";
const readyTimeoutMs = 90_000;
const endTimeoutMs = 90_000;

export type TestEngine = {
  baseUrl: string;
  secret: string;
  data: string;
  child: ChildProcess;
  log(): string;
  container(id: string): ContainerRuntime;
  /** Every process of its sandboxes, with the `unshare` around each, but not file programs of the engine. */
  processes(): number[];
  /** Ends it as its launcher does, by closing its stdin. */
  stop(): Promise<void>;
  kill(): Promise<void>;
};

/**
 * The users that an engine can be tested as. Root can also test as another user, who must be able to read the
 * checkout.
 */
export function identities(): Identity[] {
  if (process.getuid?.() !== 0) return ["not root"];
  const readable = spawnSync("setpriv", [...asOther, "test", "-x", paths.agent]).status === 0;
  if (!readable) console.warn("SKIPPED as not root: that user cannot read this checkout");
  return readable ? ["root", "not root"] : ["root"];
}

/** Arguments of `setpriv`. */
export const asOther = [`--reuid=${otherUid}`, `--regid=${otherUid}`, "--clear-groups", "--"];

/** Gives the engine its own /dev/net/tun with mode 666, as udev creates it, in a mount namespace. */
const withTun = [
  ...["unshare", "--mount", "--", "sh", "-c"],
  'mount -t tmpfs none /dev/net && mknod -m 666 /dev/net/tun c 10 200 && exec "$@"',
  "with-tun",
];

/** Gives the engine a resolv.conf of its own, in a mount namespace. */
const withResolvConf = (text: string) => [
  ...["unshare", "--mount", "--", "sh", "-c"],
  'mount -t tmpfs none /mnt && printf %s "$0" > /mnt/a && mount --bind /mnt/a /etc/resolv.conf && exec "$@"',
  text,
];

export function newData(as: Identity): string {
  const data = mkdtempSync(join(tmpdir(), "berth-engine-"));
  if (as === "not root" && process.getuid?.() === 0) chownSync(data, otherUid, otherUid);
  return data;
}

export function removeData(data: string): void {
  rmSync(data, { recursive: true, force: true });
}

export async function startEngine(
  as: Identity,
  options: { data: string; env?: Record<string, string>; tun?: boolean; resolvConf?: string },
): Promise<TestEngine> {
  const program = [tools.bun, paths.engine];
  const changes = as === "not root" && process.getuid?.() === 0;
  const command = changes ? ["setpriv", ...asOther, ...program] : program;
  const { tun, resolvConf } = options;
  const wrapped = resolvConf === undefined ? command : [...withResolvConf(resolvConf), ...command];
  const [file = "", ...args] = tun ? [...withTun, ...wrapped] : wrapped;
  const child = spawn(file, args, {
    cwd: "/",
    env: {
      PATH: process.env.PATH,
      BERTH_ENGINE_SECRET: secret,
      BERTH_ENGINE_DATA: options.data,
      BERTH_ENGINE_NETWORK: "none",
      ...options.env,
    },
    stdio: ["pipe", "pipe", "pipe"],
  });
  let log = "";
  child.stderr.on("data", (chunk) => {
    log = `${log}${chunk}`.slice(-100_000);
  });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const port = await portOf(child, () => log);
  const baseUrl = `http://127.0.0.1:${port}`;
  return {
    baseUrl,
    secret,
    data: options.data,
    child,
    log: () => log,
    container: (id) => engineRuntime({ id, baseUrl, secret }),
    processes: () =>
      childrenOf(child.pid ?? 0)
        .filter((pid) => commandOf(pid).includes("--kill-child"))
        .flatMap((pid) => [pid, ...descendantsOf(pid)]),
    async stop() {
      child.stdin.end();
      await withTimeout(ended, endTimeoutMs, "the end of the engine");
    },
    async kill() {
      child.kill("SIGKILL");
      await withTimeout(ended, endTimeoutMs, "the end of the engine");
    },
  };
}

async function portOf(child: ChildProcess, log: () => string): Promise<number> {
  const { stdout } = child;
  if (stdout === null) throw new Error("the engine has no stdout");
  const first = new Promise<string>((resolve, reject) => {
    createInterface({ input: stdout }).once("line", resolve);
    child.once("exit", (code) => reject(new Error(`the engine ended with ${code}: ${log()}`)));
  });
  const line = await withTimeout(first, readyTimeoutMs, "the engine's line");
  return (JSON.parse(line) as { port: number }).port;
}

/** Stops an engine and checks that nothing of it is left. */
export async function stopWithoutTraces(
  engine: TestEngine,
  { ranSandboxes = true } = {},
): Promise<void> {
  const processes = engine.processes();
  // Otherwise nothing would prove that the processes are found.
  if (ranSandboxes) expect(processes.length).toBeGreaterThan(0);
  await engine.stop();
  expect(tracesOf(engine.data, processes)).toEqual([]);
  removeData(engine.data);
}

/** One engine for all tests of a `describe`. Its members exist once the hooks have run. */
export function sharedEngine(
  as: Identity,
  { ranSandboxes = true, hookTimeoutMs = 180_000 } = {},
): TestEngine {
  const engine = { data: newData(as) } as TestEngine;
  beforeAll(async () => void Object.assign(engine, await startEngine(as, engine)));
  afterAll(() => stopWithoutTraces(engine, { ranSandboxes }), hookTimeoutMs);
  return engine;
}

/** Starts engines on one data folder per test. After the test they are stopped, and nothing of them may be left. */
export class EnginesOfTest {
  data = "";
  readonly #as: Identity;
  readonly #seen = new Set<number>();
  #engines: TestEngine[] = [];

  constructor(as: Identity, { tracesEndWithinMs = 0 } = {}) {
    this.#as = as;
    beforeEach(() => {
      this.data = newData(as);
      this.#engines = [];
      this.#seen.clear();
    });
    afterEach(async () => {
      for (const engine of this.#engines) {
        if (engine.child.exitCode !== null || engine.child.signalCode !== null) continue;
        this.remember(engine);
        await engine.stop();
      }
      const traces = () => tracesOf(this.data, [...this.#seen]);
      if (tracesEndWithinMs > 0)
        await until("no trace is left", () => traces().length === 0, tracesEndWithinMs);
      expect(traces()).toEqual([]);
      removeData(this.data);
    });
  }

  async start(
    env: Record<string, string> = {},
    options: { tun?: boolean; resolvConf?: string } = {},
  ): Promise<TestEngine> {
    const engine = await startEngine(this.#as, { data: this.data, env, ...options });
    this.#engines.push(engine);
    return engine;
  }

  /** Includes the processes that run now in the search for what is left. */
  remember(engine: TestEngine): void {
    for (const pid of engine.processes()) this.#seen.add(pid);
  }
}

let generated = 0;

export function newId(): string {
  generated += 1;
  return `t${String(generated).padStart(7, "0")}${crypto.randomUUID().replaceAll("-", "").slice(0, 16)}`;
}

type Start = {
  startId?: string;
  internet?: boolean;
  snapshot?: string;
  size?: Size;
  sudo?: boolean;
};

export function newStart({ internet = false, ...more }: Start = {}) {
  const startId = crypto.randomUUID().replaceAll("-", "").slice(0, 16);
  return { startId, secret: crypto.randomUUID(), env: {}, network: { internet }, ...more };
}

export type RunningSandbox = {
  id: string;
  startId: string;
  /** The secret of its agent. */
  secret: string;
  container: ContainerRuntime;
  started: Started;
  /** `user`: berth by default. */
  sh(command: string, timeoutMs?: number, user?: string): Promise<ExecResult>;
};

/** Starts a sandbox and returns a way to run commands in it by its real agent. */
export async function run(
  engine: TestEngine,
  { id = newId(), ...over }: Start & { id?: string } = {},
): Promise<RunningSandbox> {
  const container = engine.container(id);
  const call = newStart(over);
  const started = await container.start(call);
  return {
    id,
    startId: call.startId,
    secret: call.secret,
    container,
    started,
    sh: (command, timeoutMs = 20_000, user) =>
      exec(container, started, call.secret, {
        ...{ command, timeoutMs },
        ...(user === undefined ? {} : { user }),
      }),
  };
}

/** Restarts a sandbox that has written `kept` to a file. */
export async function expectFilesKept(engine: TestEngine, id: string): Promise<void> {
  const restarted = await run(engine, { id });
  expect(restarted.started.files).toBe("kept");
  expect((await restarted.sh("cat /workspace/file")).stdout).toBe("kept\n");
}

export async function exec(
  container: ContainerRuntime,
  { address, incarnation }: Started,
  agentSecret: string,
  call: { command: string; timeoutMs: number; user?: string },
): Promise<ExecResult> {
  const request = new Request(`${address}${agentPaths.exec}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${agentSecret}`,
      "content-type": "application/json",
      [agentHeaders.fence]: "1",
      [agentHeaders.incarnation]: incarnation,
    },
    body: JSON.stringify({
      ...{ encoding: "utf8", maxOutputBytes: 1_000_000 },
      ...{ execId: crypto.randomUUID(), requestId: "test" },
      ...call,
    }),
  });
  const response = await container.agent(address, request);
  const text = await response.text();
  if (!response.ok) throw new Error(`exec returned ${response.status}: ${text}`);
  return execResultSchema.parse(JSON.parse(text));
}

/** Throws if there is none: PID 0 in its place would stand for the test's own process group. */
export function firstOf(pids: number[]): number {
  const [pid] = pids;
  if (pid === undefined) throw new Error("there is no such process");
  return pid;
}

/** The first process of each sandbox, with its PID on the machine. */
export function agentsOf(engine: TestEngine): number[] {
  return engine
    .processes()
    .filter((pid) => commandOf(pid).endsWith("jail\0") && !commandOf(pid).includes("unshare"));
}

/** Finds what no engine may leave: processes, cgroups, mounts, interfaces. */
export function tracesOf(data: string, processes: number[]): string[] {
  // Without an instance id the engine has made nothing that could be left.
  const instance = existsSync(`${data}/instance`)
    ? readFileSync(`${data}/instance`, "utf8").trim()
    : "no-instance";
  const alive = processes.filter(isRunning).map((pid) => `process ${pid}`);
  const groups = cgroupFolders().filter((folder) => folder.includes(`berth-${instance}`));
  const mounts = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((it) => it.includes(data));
  const interfaces = readdirSync("/sys/class/net").filter((it) =>
    it.startsWith(`brth${instance.slice(0, 6)}`),
  );
  const atWork = processesNaming(data).map(({ pid }) => `process ${pid}`);
  return [...alive, ...atWork, ...groups, ...mounts, ...interfaces];
}

export function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

function cgroupFolders(): string[] {
  const found = spawnSync("find", ["/sys/fs/cgroup", "-maxdepth", "4", "-name", "berth-*"]);
  return String(found.stdout).split("\n").filter(Boolean);
}

async function withTimeout<T>(work: Promise<T>, ms: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not come within ${ms} ms`)), ms);
  });
  return await Promise.race([work, late]).finally(() => clearTimeout(timer));
}
