/** Starts a real agent for a test, as in a container, in its own workspace; at the end it checks that nothing is left. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect } from "vitest";
import { singleThreadedBun } from "../../container/engine/jail/bun-options.ts";
import type { ErrorBody } from "../../src/protocol/errors.ts";
import type { ExecInput, ExecResult } from "../../src/protocol/exec.ts";
import {
  type AgentHealth,
  type AgentWork,
  agentFencedSchema,
  agentHealthSchema,
  agentWorkSchema,
} from "../../src/protocol/internal/agent.ts";
import { until } from "../until.ts";
import { completeCall } from "./checked-call.ts";
import { childrenOf, processesWith, stateOf, statFields, threadsOf } from "./proc.ts";

/** USER_HZ: the same on every Linux that Node runs on. */
const ticksPerSecond = 100;

export const binary = resolve("dist/berth-agent");
export const isRoot = process.getuid?.() === 0;

export type Kind = "cgroup" | "subreaper";

/** The kinds of process trees that this machine can test: cgroups need a writable cgroup v2. */
export const kinds: Kind[] = canMakeGroups() ? ["cgroup", "subreaper"] : ["subreaper"];

type Options = {
  tree?: Kind;
  env?: Record<string, string>;
  /** The environment of the agent's own process. */
  ownEnv?: Record<string, string>;
  ownCwd?: string;
  ownUid?: number;
  /** Instead of a new, empty folder. */
  run?: string;
  program?: string;
  /** The boot document in the environment, as the platform gives it to a container's entry. */
  viaEntry?: boolean;
  /** Where it reaches its object. */
  callbackUrl?: string;
  /** Instead of the correct one. */
  document?: string;
};

export class Agent {
  readonly secret = randomBytes(24).toString("hex");
  readonly startId = randomBytes(8).toString("hex");
  workspace = "";
  /** Instead of /run. Only the agent can write there, if commands run as another user. */
  run = "";
  /** A variable of everything that the agent runs, by which the check finds what is left. */
  readonly mark = `mark${randomBytes(8).toString("hex")}`;
  process!: ChildProcess;
  port = 0;
  incarnation = "";
  tree = "";
  log = "";

  static async start(options: Options = {}): Promise<Agent> {
    const agent = new Agent();
    await agent.#start(options);
    return agent;
  }

  /** An agent that starts before the tests of the calling block, and stops after them. */
  static forBlock(options: Options = {}): Agent {
    const agent = new Agent();
    beforeAll(() => agent.#start(options));
    afterAll(() => agent.stop());
    return agent;
  }

  private constructor() {}

  async #start(options: Options): Promise<void> {
    this.#spawn(options);
    endWithThisProcess(this.pid);
    try {
      Object.assign(this, JSON.parse(await this.#firstLine()));
    } catch (error) {
      this.#removeFolders();
      throw error;
    }
  }

  #spawn(options: Options): void {
    this.workspace = mkdtempSync(join(tmpdir(), "berth-agent-"));
    chmodSync(this.workspace, 0o777);
    const { tree, env, ownEnv = {}, ownCwd = "/", ownUid, viaEntry = false } = options;
    this.run = options.run ?? newRun(ownUid);
    const place = {
      ...{ port: 0, workspace: this.workspace, home: this.workspace },
      metadata: join(this.run, "berth"),
      // Logs are made with the rights of commands, and have no names.
      logs: tmpdir(),
    };
    const document = JSON.stringify({
      startId: this.startId,
      secret: this.secret,
      env: { BERTH_TEST_MARK: this.mark, ...env },
      callbackUrl: options.callbackUrl,
      differences: { ...place, tree },
    });
    this.process = spawn(options.program ?? binary, ["serve"], {
      env: viaEntry ? { ...ownEnv, BERTH_BOOT: document } : { ...singleThreadedBun, ...ownEnv },
      cwd: ownCwd,
      stdio: ["ignore", "pipe", "pipe", viaEntry ? "ignore" : "pipe"],
      ...(ownUid === undefined ? {} : { uid: ownUid, gid: ownUid }),
    });
    this.process.stderr?.on("data", (bytes) => {
      this.log += bytes;
    });
    const boot = this.process.stdio[3];
    if (boot && "end" in boot) {
      // An agent that ends before it has read everything reports that on stderr.
      boot.on("error", () => {});
      boot.end(options.document ?? document);
    }
  }

  get pid(): number {
    if (this.process.pid === undefined) throw new Error("the agent did not start");
    return this.process.pid;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The processor time of the agent itself, independent of other load on the machine. */
  cpuSeconds(): number {
    const [user, system] = statFields(this.pid).slice(11, 13);
    return (Number(user) + Number(system)) / ticksPerSecond;
  }

  /** Sends JSON calls as an object does: with the defaults of their schemas. */
  request(path: string, { headers, body, ...init }: RequestInit = {}): Promise<Response> {
    const sent = typeof body === "string" ? completeCall(path, body) : body;
    return fetch(`${this.url}${path}`, {
      ...init,
      ...(sent === undefined ? {} : { body: sent }),
      headers: { authorization: `Bearer ${this.secret}`, ...(headers as Record<string, string>) },
    });
  }

  post(call: ExecInput | Record<string, unknown>, init: RequestInit = {}): Promise<Response> {
    const body = JSON.stringify({ execId: "exec1", requestId: "request1", ...call });
    return this.request("/v1/exec", { method: "POST", body, ...init });
  }

  async exec(call: ExecInput): Promise<ExecResult> {
    const response = await this.post(call);
    const text = await response.text();
    expect(response.status, text).toBe(200);
    return JSON.parse(text) as ExecResult;
  }

  async sh(command: string, more: Partial<ExecInput> = {}): Promise<ExecResult> {
    return this.exec({ ...more, command } as ExecInput);
  }

  async refused(
    call: ExecInput | Record<string, unknown>,
    init?: RequestInit,
  ): Promise<ErrorBody & { status: number }> {
    const response = await this.post(call, init);
    return { status: response.status, ...((await response.json()) as ErrorBody) };
  }

  /** Raises the fence as the object does. With `drain` it ends what runs below it. */
  async raiseFence(fence: number, drain: boolean, waitMs = drain ? 20_000 : 0) {
    const body = JSON.stringify({ fence, drain, waitMs });
    const response = await this.request("/v1/fence", { method: "POST", body });
    expect(response.status).toBe(200);
    return agentFencedSchema.parse(await response.json());
  }

  async health(): Promise<AgentHealth> {
    return agentHealthSchema.parse(await (await this.request("/v1/health")).json());
  }

  async work(): Promise<AgentWork> {
    return agentWorkSchema.parse(await (await this.request("/v1/work")).json());
  }

  /** Waits until so many commands run. */
  untilRunning(count: number): Promise<void> {
    return until(`${count} run`, async () => (await this.health()).running === count);
  }

  /** Processes that the agent's commands started and that still run. */
  left(): number[] {
    return processesWith(`BERTH_TEST_MARK=${this.mark}`);
  }

  descriptors(): number {
    return readdirSync(`/proc/${this.pid}/fd`).length;
  }

  /** As the kernel has it; only root can read it. */
  environment(): string {
    return readFileSync(`/proc/${this.pid}/environ`, "utf8");
  }

  threads(): string[] {
    return threadsOf(this.pid);
  }

  memoryKiB(): number {
    const rollup = readFileSync(`/proc/${this.pid}/smaps_rollup`, "utf8");
    return Number(/^Private_Dirty:\s+(\d+)/m.exec(rollup)?.[1]);
  }

  /** Waits until the agent uses less than `moreKiB` above `before`, because it returns temporary memory. */
  async keepsLessThan(moreKiB: number, before: number): Promise<void> {
    const more = () => this.memoryKiB() - before;
    await until("its memory is returned", () => more() < moreKiB).catch((thrown) => {
      throw new Error(`it keeps ${more()} KiB more`, { cause: thrown });
    });
  }

  /** Dead children that nobody has reaped. */
  zombies(): number {
    return childrenOf(this.pid).filter((pid) => stateOf(pid) === "Z").length;
  }

  /** Stops an agent that its test has not ended itself, also when the test fails: `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.process.exitCode === null && this.process.signalCode === null) await this.stop();
  }

  /** Ends the agent as the platform does, and checks that nothing is left of it. */
  async stop(): Promise<void> {
    this.process.kill("SIGTERM");
    await until(
      "the agent has ended",
      () => this.process.exitCode !== null || this.process.signalCode !== null,
    );
    expect(this.left(), "processes of commands").toEqual([]);
    expect(this.process.exitCode, this.log).toBe(0);
    if (this.tree === "cgroup") expect(this.groups(), "control groups").toEqual([]);
    this.#removeFolders();
  }

  /** The folders of its cgroups. */
  groups(): string[] {
    const folder = cgroupFolder() ?? "/";
    const names = readdirSync(folder).filter((name) => name.includes(this.incarnation));
    return names.map((name) => join(folder, name));
  }

  #removeFolders(): void {
    for (const folder of [this.workspace, this.run]) rmSync(folder, { recursive: true });
  }

  #firstLine(): Promise<string> {
    return new Promise((resolveLine, reject) => {
      let text = "";
      this.process.stdout?.on("data", (bytes) => {
        text += bytes;
        if (text.includes("\n")) resolveLine(text);
      });
      this.process.once("exit", () => reject(new Error(`the agent ended: ${this.log}`)));
    });
  }
}

/** Reads the ids of agents, and ends those that still run when its input ends. */
const guardScript = `while read pid; do pids="$pids $pid"; done
  for pid in $pids; do case $(readlink /proc/$pid/exe) in "$0"*) kill $pid;; esac; done`;

let guard: ChildProcess | undefined;

/**
 * Ends an agent when this process ends, however that happens. A parent-death signal cannot do this, because the kernel
 * clears it when the agent changes its rights.
 */
function endWithThisProcess(pid: number): void {
  if (guard === undefined) {
    const stdio = ["pipe", "ignore", "ignore"] as const;
    guard = spawn("sh", ["-c", guardScript, binary], { stdio: [...stdio], detached: true });
    guard.unref();
    (guard.stdin as Socket).unref();
  }
  guard.stdin?.write(`${pid}\n`);
}

/** The options of a request under a lease. */
export function fenced(fence: number): { headers: Record<string, string> } {
  return { headers: { "berth-fence": String(fence) } };
}

/** A folder like /run: it belongs to the agent's user, and everybody can read it. */
export function newRun(uid?: number): string {
  const run = mkdtempSync(join(tmpdir(), "berth-run-"));
  chmodSync(run, 0o755);
  if (uid !== undefined) chownSync(run, uid, uid);
  return run;
}

function canMakeGroups(): boolean {
  const folder = cgroupFolder();
  if (folder === undefined || !existsSync(`${folder}/cgroup.procs`)) return false;
  try {
    accessSync(`${folder}/cgroup.procs`, constants.W_OK);
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function cgroupFolder(): string | undefined {
  const mounts = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
  const mountedAt = mounts.find((line) => line.includes(" - cgroup2 "))?.split(" ")[4];
  const own = /^0::(.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1];
  return mountedAt === undefined || own === undefined ? undefined : join(mountedAt, own);
}
