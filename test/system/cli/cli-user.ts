/** A CLI user on a machine of their own: a home folder, checkouts in it, and runs of the real `berth`. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect } from "vitest";
import { root } from "../../../container/launch/paths.js";
import {
  connect,
  type ListedSandbox,
  type Sandbox as SandboxHandle,
} from "../../../src/client/index.ts";
import type { Sandbox } from "../../../src/protocol/sandbox.ts";
import { until } from "../../until.ts";
import { cleanEnvironment, type RunningServer } from "../server.ts";
import { useSharedServer } from "../shared-server.ts";

const exitTimeoutMs = 140_000;
export const main = join(root, "src/cli/main.ts");

export type CliResult = {
  code: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
};
export type RunOptions = {
  cwd?: string;
  env?: Record<string, string>;
  input?: string;
};

export class CliUser implements Disposable {
  readonly home: string;
  readonly #env: Record<string, string>;
  readonly #running = new Set<ChildProcess>();

  /** With a server: its address and key are in the environment. */
  constructor(server?: Pick<RunningServer, "url" | "key">) {
    this.home = mkdtempSync(join(tmpdir(), "berth-user-"));
    this.#env = cleanEnvironment({
      HOME: this.home,
      XDG_CONFIG_HOME: join(this.home, ".config"),
      XDG_RUNTIME_DIR: join(this.home, "run"),
      GIT_CONFIG_NOSYSTEM: "1",
      // Shared by all runs, because reading the sources takes half of a short run.
      NODE_COMPILE_CACHE: join(tmpdir(), "berth-compile-cache"),
      ...(server === undefined ? {} : { BERTH_URL: server.url, BERTH_KEY: server.key }),
    });
    delete this.#env.NO_COLOR;
    delete this.#env.FORCE_COLOR;
    this.git(this.home, "config", "--global", "user.email", "user@example.com");
    this.git(this.home, "config", "--global", "user.name", "User");
    this.git(this.home, "config", "--global", "init.defaultBranch", "main");
  }

  get environment(): Record<string, string> {
    return this.#env;
  }

  git(cwd: string, ...args: string[]): string {
    return execFileSync("git", args, { cwd, env: this.#env, encoding: "utf8", stdio: "pipe" });
  }

  /** A repository with one commit. */
  repo(name: string, remote?: string): string {
    const folder = join(this.home, name);
    mkdirSync(folder, { recursive: true });
    this.git(folder, "init", "-q");
    if (remote !== undefined) this.git(folder, "remote", "add", "origin", remote);
    this.write(folder, "README.md", "hello\n");
    this.commit(folder, "first");
    return folder;
  }

  write(folder: string, path: string, content: string): void {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }

  commit(folder: string, message: string): string {
    this.git(folder, "add", "-A");
    this.git(folder, "commit", "-q", "--allow-empty", "-m", message);
    return this.git(folder, "rev-parse", "HEAD").trim();
  }

  start(args: string[], { cwd = this.home, env = {}, input }: RunOptions = {}): StartedCommand {
    // The Node that runs the tests strips types by itself.
    const child = spawn(process.execPath, [main, ...args], {
      cwd,
      env: { ...this.#env, ...env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#running.add(child);
    child.once("close", () => this.#running.delete(child));
    child.stdin.on("error", () => {});
    child.stdin.end(input ?? "");
    const printed = collectOutput(child);
    return { child, printed, ended: waitForExit(child, printed) };
  }

  async berth(args: string[], options: RunOptions = {}): Promise<CliResult> {
    return await this.start(args, options).ended;
  }

  /** The result of a command that must succeed without a message. */
  async output(args: string[], options: RunOptions = {}): Promise<string> {
    const { code, stdout, stderr } = await this.berth(args, options);
    expect({ code, stderr }, args.join(" ")).toEqual({ code: 0, stderr: "" });
    return stdout;
  }

  /** The message of a command that must fail without a result. */
  async failure(args: string[], options: RunOptions = {}): Promise<string> {
    const { code, stdout, stderr } = await this.berth(args, options);
    const expected = !isRunner(args) ? 1 : stderr.includes("Wait longer with") ? 124 : 125;
    expect({ code, stdout }, args.join(" ")).toEqual({ code: expected, stdout: "" });
    return stderr;
  }

  /** The document printed with `--json`; fails unless the exit code is the given one. */
  async json<Document = Record<string, unknown>>(
    args: string[],
    options: RunOptions & { code?: number } = {},
  ): Promise<Document> {
    const result = await this.berth([...args, "--json"], options);
    if (result.code !== (options.code ?? 0)) {
      throw new Error(
        `berth ${args.join(" ")} ended with ${result.code}: ${result.stdout}${result.stderr}`,
      );
    }
    return JSON.parse(result.stdout) as Document;
  }

  /** The sandbox of a checkout, ready to use. */
  async startSandbox(cwd: string, ...options: string[]): Promise<Sandbox> {
    const args = ["start", "--wait", ...options];
    return (await this.json<{ sandbox: Sandbox }>(args, { cwd })).sandbox;
  }

  [Symbol.dispose](): void {
    for (const child of this.#running) child.kill("SIGKILL");
    rmSync(this.home, { recursive: true, force: true });
  }
}

/** These end with the code of what they run, so failures of their own have another one. */
function isRunner([name = "", below = ""]: string[]): boolean {
  if (name === "lock") return below !== "status" && below !== "break";
  return name === "exec" || name === "attach";
}

/** A user of the shared server for all tests of a file, cleaned up after the last one. */
export async function useCliUser() {
  const server = await useSharedServer();
  const user = new CliUser(server);
  const client = connect(server);
  afterAll(async () => {
    user[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
  });
  return {
    server,
    user,
    /** The sandbox of a checkout, created by a first run there. */
    sandboxOf: async (cwd: string): Promise<SandboxHandle> => {
      const { stdout } = await user.berth(["exec", "--json", "--", "true"], { cwd });
      return client.sandbox(JSON.parse(stdout).sandbox);
    },
    /** All sandboxes of the user. */
    listSandboxes: (): Promise<ListedSandbox[]> => client.list(),
  };
}

/** No holder, no waiter, no process. */
export async function expectNothingLeft(sandbox: SandboxHandle): Promise<void> {
  await until("the lease is free", async () => {
    const { state, waiterCount } = await sandbox.lease.get();
    return state === "free" && waiterCount === 0;
  });
  expect(await sandbox.processes.list({ state: "running" })).toHaveLength(0);
}

/** `printed`: what it has written so far. */
export type StartedCommand = { child: ChildProcess; printed: Printed; ended: Promise<CliResult> };

type Printed = { stdout: string; stderr: string };

function collectOutput(child: ChildProcess): Printed {
  const printed = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream]?.setEncoding("utf8").on("data", (text: string) => {
      printed[stream] += text;
    });
  }
  return printed;
}

function waitForExit(child: ChildProcess, printed: Printed): Promise<CliResult> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Error(`berth does not exit; it printed: ${printed.stdout}${printed.stderr}`));
    }, exitTimeoutMs);
    child.once("error", reject);
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, ...printed });
    });
  });
}
