/** Runs commands: limits how many run at once, and follows each from its start to its result. */
import { closeSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { ExecResult } from "../../../src/protocol/exec.ts";
import type { AgentExecCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { createMemoryFile } from "../../engine/jail/descriptors.ts";
import { chownDescriptor } from "../kernel/libc.ts";
import { PipeReader } from "../kernel/pipe.ts";
import { openPipes, resourcesUnavailable } from "../kernel/pipes.ts";
import type { SandboxDeps } from "../sandbox-deps.ts";
import type { GatedCall, GatedWork } from "../server/gated-work.ts";
import { resolvesWithin } from "../server/timeout.ts";
import {
  type Exit,
  KillTimeoutError,
  type ProcessSupervisor,
  type ProcessTree,
} from "../supervision/process-tree.ts";
import { Output } from "./output.ts";
import {
  type ResolvedProgram,
  resolveProgram,
  type StartFailure,
  startFailure,
} from "./program.ts";

export type Finished = Omit<ExecResult, "execId" | "incarnation">;

type CommandDeps = Pick<SandboxDeps, "sandboxEnv" | "supervisor">;

export class Commands {
  readonly gated: GatedWork;
  readonly #deps: CommandDeps;
  #running = 0;

  constructor({ gated, sandboxEnv, supervisor }: CommandDeps & Pick<SandboxDeps, "gated">) {
    this.gated = gated;
    this.#deps = { sandboxEnv, supervisor };
  }

  /**
   * Aborting `gatedCall.controller` ends the command and all that it started. Must stay synchronous down to the start of
   * the process: nothing can raise the fence between the check and the start.
   */
  run(call: AgentExecCall, gatedCall: GatedCall): Promise<Finished> {
    this.gated.fence.pass(gatedCall.fence);
    const limit = limits.execConcurrentMax;
    if (this.#running >= limit) {
      throw new BerthError("too_many", `${limit} commands are running already.`, {
        hint: "Wait for one of them to end.",
        facts: { limit },
      });
    }
    const result = runCommand(call, this.#deps, gatedCall.controller.signal);
    const ended = result.catch((error) =>
      error instanceof KillTimeoutError ? error.ended : undefined,
    );
    this.#running++;
    this.gated.track(ended, gatedCall);
    ended.finally(() => {
      this.#running--;
    });
    return result;
  }
}

/**
 * Throws bad_cwd before anything runs. Aborting `signal` ends the command: a BerthError as the reason is thrown; otherwise
 * nobody wants the result any more. Synchronous until the process is started.
 */
export async function runCommand(
  call: AgentExecCall,
  { sandboxEnv, supervisor }: CommandDeps,
  signal: AbortSignal,
): Promise<Finished> {
  const startedAt = performance.now();
  const program = resolveProgram(sandboxEnv, call);
  const output = new Output(call.maxOutputBytes);
  try {
    const ran =
      "program" in program
        ? await runProgram(program, supervisor, {
            stdin: openInput(call),
            onOutput: (stream, bytes) => output.take(stream, bytes),
            timeoutMs: call.timeoutMs,
            signal,
          })
        : program;
    if (!("exit" in ran)) output.take("stderr", Buffer.from(ran.line));
    return {
      ...("exit" in ran ? ran.exit : { exitCode: ran.exitCode, signal: null }),
      timedOut: "exit" in ran && ran.timedOut,
      stdout: output.stdout.text(call.encoding),
      stderr: output.stderr.text(call.encoding),
      truncated: output.truncated,
      leftovers: "exit" in ran ? ran.leftovers : 0,
      durationMs: Math.round((performance.now() - startedAt) * 100) / 100,
    };
  } finally {
    output.release();
  }
}

/** A memory file holds the whole input, so nothing has to wait for a command that does not read. */
function openInput({ stdin, encoding }: AgentExecCall): number | "ignore" {
  if (stdin === undefined || stdin === "") return "ignore";
  try {
    return createMemoryFile(Buffer.from(stdin, encoding));
  } catch (error) {
    throw resourcesUnavailable(error);
  }
}

type ProgramRun = {
  /** A descriptor is closed in any case. */
  stdin: number | "ignore";
  onOutput: (stream: "stdout" | "stderr", bytes: Uint8Array) => void;
  timeoutMs: number;
  signal: AbortSignal;
};

type Ran = { exit: Exit; timedOut: boolean; leftovers: number };

/** Runs a program until nothing of its process tree is left. Synchronous until the process is started. */
export async function runProgram(
  program: ResolvedProgram,
  supervisor: ProcessSupervisor,
  run: ProgramRun,
): Promise<Ran | StartFailure> {
  const { stdin } = run;
  const pipes = openOutput(stdin);
  const [stdoutRead, stdout] = pipes.stdout;
  const [stderrRead, stderr] = pipes.stderr;
  const { user } = program;
  let tree: ProcessTree;
  try {
    if (user !== undefined) for (const fd of [stdout, stderr]) chownDescriptor(fd, user);
    tree = await supervisor.start({ ...program, stdin, stdout, stderr });
  } catch (error) {
    closeSync(stdoutRead);
    closeSync(stderrRead);
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined || error instanceof BerthError) throw error;
    return startFailure(program.argv[0] ?? program.program, code);
  } finally {
    closeSync(stdout);
    closeSync(stderr);
    if (stdin !== "ignore") closeSync(stdin);
  }
  const readers = [
    new PipeReader(stdoutRead, (bytes) => run.onOutput("stdout", bytes)),
    new PipeReader(stderrRead, (bytes) => run.onOutput("stderr", bytes)),
  ];
  return waitForEnd(tree, readers, run);
}

function openOutput(stdin: number | "ignore") {
  try {
    return openPipes(["stdout", "stderr"]);
  } catch (error) {
    if (stdin !== "ignore") closeSync(stdin);
    throw error;
  }
}

async function waitForEnd(
  tree: ProcessTree,
  readers: PipeReader[],
  { timeoutMs, signal }: ProgramRun,
): Promise<Ran> {
  const outputRead = Promise.allSettled(readers.map((reader) => reader.ended));
  const reason = await waitForExit(tree, timeoutMs, signal);
  if (reason !== undefined) {
    tree.terminate();
    await tree.waitUntilEmpty(limits.execKillGraceMs);
  } else {
    await resolvesWithin(outputRead, limits.execDrainMs);
  }
  const leftovers = await tree.end();
  // All writers are dead, so the pipes end, unless one was handed to a process of another command.
  if (!(await resolvesWithin(outputRead, limits.execDrainMs))) {
    for (const reader of readers) reader.stop();
  }
  await outputRead;
  // A command that exited by itself or timed out keeps its result.
  if (reason === "aborted" && signal.reason instanceof BerthError) throw signal.reason;
  return { exit: await tree.exited, timedOut: reason === "timeout", leftovers };
}

/** Resolves with why the tree must be ended; undefined: the process exited by itself. */
export function waitForExit(
  tree: { readonly exited: Promise<unknown> },
  timeoutMs: number | undefined,
  signal: AbortSignal,
): Promise<"timeout" | "aborted" | undefined> {
  return new Promise((resolve) => {
    const timer =
      timeoutMs === undefined ? undefined : setTimeout(() => finish("timeout"), timeoutMs);
    const onAbort = () => finish("aborted");
    signal.addEventListener("abort", onAbort);
    tree.exited.then(() => finish(undefined));
    if (signal.aborted) onAbort();
    function finish(reason: "timeout" | "aborted" | undefined): void {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      resolve(reason);
    }
  });
}
