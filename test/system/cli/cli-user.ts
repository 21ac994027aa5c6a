/**
 * A CLI user on a machine of their own: a home folder, checkouts in it, and runs of the real `berth`. Dispose of it at
 * the end of the test.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { root } from "../../../container/launch/paths.js";
import { cleanEnvironment, type RunningServer } from "../server.ts";

const exitTimeoutMs = 140_000;
const main = join(root, "src/cli/main.ts");

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
    return { child, ended: waitForExit(child) };
  }

  async berth(args: string[], options: RunOptions = {}): Promise<CliResult> {
    return await this.start(args, options).ended;
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

  [Symbol.dispose](): void {
    for (const child of this.#running) child.kill("SIGKILL");
    rmSync(this.home, { recursive: true, force: true });
  }
}

export type StartedCommand = { child: ChildProcess; ended: Promise<CliResult> };

function waitForExit(child: ChildProcess): Promise<CliResult> {
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Error(`berth does not exit; it printed: ${stdout}${stderr}`));
    }, exitTimeoutMs);
    child.once("error", reject);
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, stdout, stderr });
    });
  });
}
