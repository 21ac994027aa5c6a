/**
 * Runs commands: their shell or program, time limit and outcome. Those whose output is returned as a whole may be
 * stored for repeated calls.
 */
import { BerthError } from "../../../src/protocol/errors.ts";
import type { AgentExecCall, AgentSessionExecCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { FakeAgent } from "./agent.ts";
import { Exit, type Io, runProgram, Shell } from "./shell.ts";
import { decode, Input, Output } from "./stdio.ts";
import { cancelled, leaseLost, Stop, Stopped } from "./waiting.ts";

export type Program = {
  command?: string | undefined;
  argv?: string[] | undefined;
};

export type Outcome = {
  exitCode: number | null;
  signal: string | null;
  timedOut: boolean;
  /** Cut off by something other than a signal: there is no response. */
  cut: string | undefined;
};

export const timedOut = "timeout";

export function nameOf({ command, argv }: Program): string {
  return command ?? (argv ?? []).join(" ");
}

/** A shell with the folder and the environment of a call. Throws if there is no such folder. */
export function openShell(
  agent: FakeAgent,
  { cwd, env }: { cwd?: string | undefined; env?: Record<string, string> | undefined },
): Shell {
  const environment = { PATH: "/usr/bin:/bin", HOME: "/workspace", ...agent.env, ...env };
  return new Shell(agent, agent.folder(cwd), environment);
}

/** Throws if there are that many already. */
export function requireRoom(count: number, max: number, what: string): void {
  if (count >= max) throw new BerthError("too_many", `at most ${max} ${what}`);
}

/** Runs a command line in a shell of its own, or a program with arguments. */
export function runCommand(
  program: Program,
  { agent, shell, io, stop }: { agent: FakeAgent; shell: Shell; io: Io; stop: Stop },
): Promise<Outcome> {
  const { argv } = program;
  return outcomeOf(() => {
    if (argv === undefined) return shell.run(program.command ?? "", io, stop);
    if (argv[0] === "sh" && argv[1] === "-c") return shell.run(argv[2] ?? "", io, stop);
    const env = Object.fromEntries(shell.exported);
    if (argv[0] === "pwd") return shell.run("pwd", io, stop);
    return runProgram(argv, { agent, io, stop, env });
  });
}

export async function outcomeOf(run: () => Promise<number>): Promise<Outcome> {
  const ended = { signal: null, timedOut: false, cut: undefined };
  try {
    return { ...ended, exitCode: await run() };
  } catch (error) {
    if (error instanceof Exit) return { ...ended, exitCode: error.code };
    if (!(error instanceof Stopped)) throw error;
    const { why } = error;
    const isSignal = why.startsWith("SIG");
    if (why !== timedOut && !isSignal) return { ...ended, exitCode: null, cut: why };
    return {
      exitCode: null,
      signal: isSignal ? why : "SIGTERM",
      timedOut: why === timedOut,
      cut: undefined,
    };
  }
}

/** The caller has checked the fence in the same synchronous step. */
export async function exec(agent: FakeAgent, call: AgentExecCall): Promise<CommandAnswer> {
  const run = () => {
    const shell = openShell(agent, call);
    return runToAnswer(agent, call, call.timeoutMs, (io, stop) =>
      runCommand(call, { agent, shell, io, stop }),
    );
  };
  return call.keep === true ? agent.storedResults.runOnce(call.execId, run) : run();
}

export type CapturedOutput = { stdout: string; stderr: string; truncated: boolean };

type Call = Pick<AgentExecCall, "command" | "argv" | "execId" | "stdin" | "encoding"> &
  Pick<AgentSessionExecCall, "maxOutputBytes">;

/** Counts as gated work while it runs. */
export async function runToAnswer(
  agent: FakeAgent,
  call: Call,
  timeoutMs: number,
  run: (io: Io, stop: Stop) => Promise<Outcome>,
  /** The error of a session that ended with the command. */
  endError: (written: CapturedOutput) => BerthError | undefined = () => undefined,
): Promise<CommandAnswer> {
  requireRoom(agent.running.size, limits.execConcurrentMax, "commands run at once");
  const began = Date.now();
  agent.commandsRun.push(nameOf(call));
  const output = new Output(call.maxOutputBytes);
  const io: Io = {
    input: Input.of(decode(call.stdin, call.encoding)),
    out: (text) => output.write("stdout", text),
    err: (text) => output.write("stderr", text),
  };
  const stop = new Stop();
  const limit = stop.after(timeoutMs, timedOut);
  const end = agent.beginGatedWork(call.execId, stop);
  const { cut, ...outcome } = await run(io, stop).finally(() => {
    limit();
    end();
  });
  if (cut === "cut") throw new TypeError("connection reset");
  const written = {
    stdout: output.text("stdout", call.encoding),
    stderr: output.text("stderr", call.encoding),
    truncated: output.truncated,
  };
  const error = endError(written);
  if (error !== undefined) throw error;
  if (cut === "cancelled") throw cancelled();
  if (cut !== undefined) throw leaseLost();
  const result = {
    execId: call.execId,
    ...outcome,
    ...written,
    leftovers: 0,
    durationMs: Math.max(0, Date.now() - began),
    incarnation: agent.incarnation,
  };
  const { exitCode, signal } = outcome;
  return { body: JSON.stringify(result), exitCode, signal };
}

export type CommandAnswer = {
  body: string;
  exitCode: Outcome["exitCode"];
  signal: Outcome["signal"];
};

type StoredAnswer = { answer: Promise<CommandAnswer>; bytes: number };
type DiscardedAnswer = { discarded: Pick<CommandAnswer, "exitCode" | "signal"> };

/** Results of commands with an idempotency key: shared while they run, stored for repeated calls. */
export class StoredResults {
  readonly #answers = new Map<string, StoredAnswer | DiscardedAnswer>();
  #bytes = 0;

  /** Runs the first call with this id; all others get its result. */
  async runOnce(id: string, run: () => Promise<CommandAnswer>): Promise<CommandAnswer> {
    if (this.#answers.has(id)) return this.get(id);
    const stored: StoredAnswer = { answer: run(), bytes: 0 };
    this.#answers.set(id, stored);
    const answer = await stored.answer;
    stored.bytes = answer.body.length;
    this.#bytes += stored.bytes;
    await this.#makeRoom();
    return answer;
  }

  async get(id: string): Promise<CommandAnswer> {
    const stored = this.#answers.get(id);
    if (stored === undefined) throw new BerthError("not_found", "No such command is known here.");
    if (!("discarded" in stored)) return stored.answer;
    throw new BerthError("result_gone", "What it wrote is no longer kept.", {
      facts: stored.discarded,
    });
  }

  async #makeRoom(): Promise<void> {
    for (const [id, stored] of this.#answers) {
      if (this.#bytes <= limits.storedResultsBytesMax) return;
      if ("discarded" in stored || stored.bytes === 0) continue;
      const { exitCode, signal } = await stored.answer;
      this.#bytes -= stored.bytes;
      this.#answers.set(id, { discarded: { exitCode, signal } });
    }
  }
}
