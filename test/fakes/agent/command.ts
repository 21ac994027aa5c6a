/**
 * Runs one command: its shell or program, its time limit, its outcome.
 */
import type { FakeAgent } from "./agent.ts";
import { Exit, type Io, runProgram, type Shell } from "./shell.ts";
import { type Stop, Stopped } from "./stop.ts";

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

export function environment(agent: FakeAgent, env: Record<string, string> | undefined) {
  return { PATH: "/usr/bin:/bin", HOME: "/workspace", ...agent.env, ...env };
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
