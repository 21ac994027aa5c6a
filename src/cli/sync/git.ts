/**
 * Owns running git on this machine: arguments as they are, an environment without settings of others, a limit on each wait.
 * Does not own what is asked of it.
 */
import { spawn } from "node:child_process";
import { Failure } from "../failure.ts";

export type GitOptions = {
  cwd: string;
  env?: Record<string, string>;
  signal?: AbortSignal | undefined;
};

export type GitAsk = {
  input?: Buffer | string;
  /** An open file to read in its place. */
  from?: number;
  /** Exit codes that are answers too. */
  answers?: number[];
  env?: Record<string, string>;
  /** Gets what it writes, piece by piece, in place of keeping it. */
  onOutput?: (piece: Buffer) => void;
};

export type GitAnswer = { code: number; stdout: Buffer };

/** The largest repositories take minutes to pack; a git that hangs should still end. */
const gitMs = 30 * 60_000;
/** A list of a million names. */
const outputBytesMax = 512 * 1024 * 1024;
const saidBytesMax = 64 * 1024;

/** Nothing of hooks, watchers or a pager of the person who runs it. */
const settings = ["core.hooksPath=/dev/null", "core.fsmonitor=false", "core.quotePath=false"];

export class Git {
  readonly #options: GitOptions;

  constructor(options: GitOptions) {
    this.#options = options;
  }

  with(env: Record<string, string>): Git {
    return new Git({ ...this.#options, env: { ...this.#options.env, ...env } });
  }

  async text(args: string[], ask: GitAsk = {}): Promise<string> {
    return (await this.run(args, ask)).stdout.toString("latin1").replace(/\n$/, "");
  }

  /** Names as bytes, each byte a character. */
  async list(args: string[], ask: GitAsk = {}): Promise<string[]> {
    return fields((await this.run(args, ask)).stdout);
  }

  run(
    args: string[],
    { input, from, answers = [], env, onOutput }: GitAsk = {},
  ): Promise<GitAnswer> {
    const { cwd, signal } = this.#options;
    signal?.throwIfAborted();
    const given = settings.flatMap((setting) => ["-c", setting]);
    const child = spawn("git", [...given, ...args], {
      cwd,
      env: { ...cleanEnvironment(), ...this.#options.env, ...env },
      stdio: [from ?? "pipe", "pipe", "pipe"],
      timeout: gitMs,
      killSignal: "SIGKILL",
      ...(signal === undefined ? {} : { signal }),
    });
    const kept: Buffer[] = [];
    let bytes = 0;
    let said = "";
    let broken: unknown;
    child.stdout?.on("data", (piece: Buffer) => {
      bytes += piece.byteLength;
      if (onOutput !== undefined) {
        try {
          onOutput(piece);
        } catch (error) {
          broken = error;
          child.kill("SIGKILL");
        }
      } else if (bytes <= outputBytesMax) kept.push(piece);
      else child.kill("SIGKILL");
    });
    child.stderr?.on("data", (piece: Buffer) => {
      if (said.length < saidBytesMax) said += piece.toString();
    });
    // It may end without reading what it is given; its exit code says why.
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(input);
    return new Promise((resolve, reject) => {
      child.once("error", (error) => reject(signal?.aborted ? signal.reason : unstarted(error)));
      child.once("close", (code) => {
        if (signal?.aborted) return reject(signal.reason);
        if (broken !== undefined) return reject(broken);
        if (code === 0 || (code !== null && answers.includes(code))) {
          return resolve({ code, stdout: Buffer.concat(kept) });
        }
        reject(gitFailure(args, code, said));
      });
    });
  }
}

export function fields(output: Buffer): string[] {
  const all = output.toString("latin1").split("\0");
  if (all.at(-1) === "") all.pop();
  return all;
}

/** As git reads them with `-z`. */
export function listed(names: Iterable<string>): Buffer {
  return Buffer.from([...names].map((name) => `${name}\0`).join(""), "latin1");
}

/** What a person reads of a name. */
export function shown(name: string): string {
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

/** How his git reaches his remotes, where he has said so in his shell. */
export function connecting(): Record<string, string> {
  const told = Object.entries(process.env).filter(([name]) => /^GIT_(SSH|ASKPASS|SSL_)/.test(name));
  return Object.fromEntries(told.map(([name, value]) => [name, value ?? ""]));
}

function unstarted(error: Error): Failure {
  const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
  return new Failure(missing ? "git is not installed on this machine." : error.message, {
    code: "git_failed",
    cause: error,
    ...(missing ? { hint: "Install git; Berth asks it what your checkout holds." } : {}),
  });
}

function gitFailure(args: string[], code: number | null, said: string): Failure {
  const why = said.trim() === "" ? `it ended with ${code ?? "a signal"}` : said.trim();
  return new Failure(`git ${args.find((arg) => /^[a-z]/.test(arg)) ?? ""}: ${why}`, {
    code: "git_failed",
  });
}
