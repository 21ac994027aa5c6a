/** Runs one command from its start to its result: input, output, time limit, and the end of all that it started. */
import { closeSync, writeSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { ExecResult } from "../../../src/protocol/exec.ts";
import type { AgentExecCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { chownDescriptor, createMemoryFile } from "../kernel/libc.ts";
import { PipeReader } from "../kernel/pipe.ts";
import { openPipes, resourcesUnavailable } from "../kernel/pipes.ts";
import { resolvesWithin } from "../server/timeout.ts";
import type { Exit, ProcessSupervisor, ProcessTree } from "../supervision/process-tree.ts";
import { Output } from "./output.ts";
import { type StartFailure, startFailure } from "./program.ts";
import { type ResolvedProgram, resolveProgram } from "./resolve-program.ts";
import type { SandboxEnv } from "./sandbox-env.ts";
import { waitForExit } from "./wait-for-exit.ts";

export type Finished = Omit<ExecResult, "execId" | "incarnation">;

export type CommandDeps = {
  sandboxEnv: SandboxEnv;
  supervisor: ProcessSupervisor;
  /** Ends the command. A BerthError as the reason is thrown; otherwise nobody wants the result any more. */
  signal: AbortSignal;
};

/** Throws bad_cwd before anything runs. Synchronous until the process is started. */
export async function runCommand(call: AgentExecCall, deps: CommandDeps): Promise<Finished> {
  const startedAt = performance.now();
  const program = resolveProgram(deps.sandboxEnv, call);
  const output = new Output(call.maxOutputBytes);
  try {
    const ran = "program" in program ? await run(program, call, output, deps) : program;
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

type Ran = { exit: Exit; timedOut: boolean; leftovers: number };

async function run(
  program: ResolvedProgram,
  call: AgentExecCall,
  output: Output,
  { supervisor, signal }: CommandDeps,
): Promise<Ran | StartFailure> {
  const stdin = openInput(call);
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
    new PipeReader(stdoutRead, (bytes) => output.take("stdout", bytes)),
    new PipeReader(stderrRead, (bytes) => output.take("stderr", bytes)),
  ];
  return waitForEnd(tree, readers, { timeoutMs: call.timeoutMs, signal });
}

async function waitForEnd(
  tree: ProcessTree,
  readers: PipeReader[],
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
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

function openOutput(stdin: number | "ignore") {
  try {
    return openPipes(["stdout", "stderr"]);
  } catch (error) {
    if (stdin !== "ignore") closeSync(stdin);
    throw error;
  }
}

/** A memory file holds the whole input, so nothing has to wait for a command that does not read. */
function openInput(call: AgentExecCall): number | "ignore" {
  if (call.stdin === undefined || call.stdin === "") return "ignore";
  const bytes = Buffer.from(call.stdin, call.encoding);
  const fd = openMemoryFile();
  let written = 0;
  while (written < bytes.length) {
    // Written at a position, so that the file offset stays 0 and the command reads from the beginning.
    written += writeSync(fd, bytes, written, bytes.length - written, written);
  }
  return fd;
}

function openMemoryFile(): number {
  try {
    return createMemoryFile();
  } catch (error) {
    throw resourcesUnavailable(error);
  }
}
