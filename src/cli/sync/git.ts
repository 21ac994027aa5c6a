/** Runs git on this machine: arguments without a shell, an environment without other settings, a time limit. */
import { spawn } from "node:child_process";
import { Failure } from "../failure.ts";

type GitOptions = {
  cwd: string;
  env?: Record<string, string>;
  signal?: AbortSignal | undefined;
};

export type GitRunOptions = {
  input?: Buffer | string;
  /** A file descriptor to read instead. */
  from?: number;
  /** Exit codes that are not failures. */
  okCodes?: number[];
  env?: Record<string, string>;
  /** Receives the output in chunks; it is not collected then. */
  onOutput?: (chunk: Buffer) => void;
};

type GitResult = { code: number; stdout: Buffer };

/** Packing the largest repositories takes minutes; a hanging git must end some time. */
const gitTimeoutMs = 30 * 60_000;
/** Enough for a million names. */
const outputBytesMax = 512 * 1024 * 1024;
const stderrCharsMax = 64 * 1024;

/** Without the user's hooks, file watcher and quoting. */
const settings = ["core.hooksPath=/dev/null", "core.fsmonitor=false", "core.quotePath=false"];

export class Git {
  readonly #options: GitOptions;

  constructor(options: GitOptions) {
    this.#options = options;
  }

  with(env: Record<string, string>): Git {
    return new Git({ ...this.#options, env: { ...this.#options.env, ...env } });
  }

  async text(args: string[], options: GitRunOptions = {}): Promise<string> {
    return (await this.run(args, options)).stdout.toString("latin1").replace(/\n$/, "");
  }

  /** A list separated by NUL. Names are bytes, each byte one character. */
  async list(args: string[], options: GitRunOptions = {}): Promise<string[]> {
    return splitNul((await this.run(args, options)).stdout);
  }

  run(
    args: string[],
    { input, from, okCodes = [], env, onOutput }: GitRunOptions = {},
  ): Promise<GitResult> {
    const { cwd, signal } = this.#options;
    signal?.throwIfAborted();
    const configArgs = settings.flatMap((setting) => ["-c", setting]);
    const child = spawn("git", [...configArgs, ...args], {
      cwd,
      env: { ...cleanEnvironment(), ...this.#options.env, ...env },
      stdio: [from ?? "pipe", "pipe", "pipe"],
      timeout: gitTimeoutMs,
      killSignal: "SIGKILL",
      signal,
    });
    const chunks: Buffer[] = [];
    let bytes = 0;
    let stderr = "";
    let broken: unknown;
    child.stdout?.on("data", (chunk: Buffer) => {
      bytes += chunk.byteLength;
      if (onOutput !== undefined) {
        try {
          onOutput(chunk);
        } catch (error) {
          broken = error;
          child.kill("SIGKILL");
        }
      } else if (bytes <= outputBytesMax) chunks.push(chunk);
      else child.kill("SIGKILL");
    });
    child.stderr?.on("data", (chunk: Buffer) => {
      if (stderr.length < stderrCharsMax) stderr += chunk.toString();
    });
    // git may exit without reading its input; the exit code says why.
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(input);
    return new Promise((resolve, reject) => {
      child.once("error", (error) => reject(signal?.aborted ? signal.reason : spawnFailure(error)));
      child.once("close", (code) => {
        if (signal?.aborted) return reject(signal.reason);
        if (broken !== undefined) return reject(broken);
        if (code === 0 || (code !== null && okCodes.includes(code))) {
          return resolve({ code, stdout: Buffer.concat(chunks) });
        }
        reject(gitFailure(args, code, stderr));
      });
    });
  }
}

/**
 * Compressing a large file takes longer than sending it, and so does looking for what it resembles: git copies such files
 * into packs as they are, and takes them from there without compressing them again.
 */
export const largeFiles: Record<string, string> = {
  GIT_CONFIG_COUNT: "2",
  GIT_CONFIG_KEY_0: "core.bigFileThreshold",
  GIT_CONFIG_VALUE_0: "8m",
  GIT_CONFIG_KEY_1: "pack.compression",
  GIT_CONFIG_VALUE_1: "0",
};

export function splitNul(output: Buffer): string[] {
  const all = output.toString("latin1").split("\0");
  if (all.at(-1) === "") all.pop();
  return all;
}

/** The form that git reads with `-z`. */
export function joinNul(names: Iterable<string>): Buffer {
  return Buffer.from([...names].map((name) => `${name}\0`).join(""), "latin1");
}

/** A name as UTF-8 text. */
export function displayName(name: string): string {
  return Buffer.from(name, "latin1").toString();
}

function cleanEnvironment(): Record<string, string | undefined> {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith("GIT_"));
  return {
    ...Object.fromEntries(own),
    LC_ALL: "C",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_TERMINAL_PROMPT: "0",
    GIT_LITERAL_PATHSPECS: "1",
  };
}

/** The variables by which the user's git reaches its remotes. */
export function remoteEnvironment(): Record<string, string> {
  const variables = Object.entries(process.env).filter(([name]) =>
    /^GIT_(SSH|ASKPASS|SSL_)/.test(name),
  );
  return Object.fromEntries(variables.map(([name, value]) => [name, value ?? ""]));
}

function spawnFailure(error: Error): Failure {
  const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
  return new Failure(missing ? "git is not installed on this machine." : error.message, {
    code: "git_failed",
    cause: error,
    hint: missing ? "Install git. Berth uses it to read your checkout." : undefined,
  });
}

function gitFailure(args: string[], code: number | null, stderr: string): Failure {
  const reason = stderr.trim() === "" ? `it ended with ${code ?? "a signal"}` : stderr.trim();
  return new Failure(`git ${args.find((arg) => /^[a-z]/.test(arg)) ?? ""}: ${reason}`, {
    code: "git_failed",
  });
}
