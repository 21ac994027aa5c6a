/**
 * Owns one command from its start to its answer: input, output, time limit, and the end of all it started.
 * Does not own HTTP or the count of commands (exec.ts), nor how a tree is held together (tree/).
 */
import { closeSync, writeSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { ExecResult } from "../../../src/protocol/exec.ts";
import type { AgentExecCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { giveDescriptor, openMemory } from "../kernel/libc.ts";
import { PipeReader } from "../kernel/pipe.ts";
import { notMade, openPipes } from "../kernel/pipes.ts";
import { within } from "../server/timeout.ts";
import type { Exit, Forest, Tree } from "../supervision/process-tree.ts";
import { calledProgram, type Program } from "./called-program.ts";
import { exitOrCut } from "./exit-or-cut.ts";
import { Output } from "./output.ts";
import { type Refusal, refusal } from "./program.ts";
import type { Place } from "./sandbox-env.ts";

export type Finished = Omit<ExecResult, "execId" | "incarnation">;

/**
 * Throws bad_cwd before anything ran. `gone` aborts: the command is ended, because the caller no longer wants the
 * answer, or for the reason that is then the answer. Synchronous until the process is started.
 */
export async function runCommand(
  call: AgentExecCall,
  { place, forest, gone }: { place: Place; forest: Forest; gone: AbortSignal },
): Promise<Finished> {
  const begun = performance.now();
  const program = calledProgram(place, call);
  const output = new Output(call.maxOutputBytes);
  try {
    const around = { forest, gone, output };
    const ran = "program" in program ? await run(program, call, around) : program;
    if (!("exit" in ran)) output.take("stderr", Buffer.from(ran.line));
    return {
      ...("exit" in ran ? ran.exit : { exitCode: ran.exitCode, signal: null }),
      timedOut: "exit" in ran && ran.timedOut,
      stdout: output.stdout.text(call.encoding),
      stderr: output.stderr.text(call.encoding),
      truncated: output.truncated,
      leftovers: "exit" in ran ? ran.leftovers : 0,
      durationMs: Math.round((performance.now() - begun) * 100) / 100,
    };
  } finally {
    output.release();
  }
}

type Ran = { exit: Exit; timedOut: boolean; leftovers: number };
type Around = { forest: Forest; gone: AbortSignal; output: Output };

async function run(program: Program, call: AgentExecCall, around: Around): Promise<Ran | Refusal> {
  const stdin = inputOf(call);
  const pipes = openOutput(stdin);
  const [stdoutRead, stdout] = pipes.stdout;
  const [stderrRead, stderr] = pipes.stderr;
  const { user } = program;
  let tree: Tree;
  try {
    if (user !== undefined) for (const fd of [stdout, stderr]) giveDescriptor(fd, user);
    tree = await around.forest.start({ ...program, stdin, stdout, stderr });
  } catch (error) {
    closeSync(stdoutRead);
    closeSync(stderrRead);
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined || error instanceof BerthError) throw error;
    return refusal(program.argv[0] ?? program.program, code);
  } finally {
    closeSync(stdout);
    closeSync(stderr);
    if (stdin !== "ignore") closeSync(stdin);
  }
  const readers = [
    new PipeReader(stdoutRead, (bytes) => around.output.take("stdout", bytes)),
    new PipeReader(stderrRead, (bytes) => around.output.take("stderr", bytes)),
  ];
  return follow(tree, readers, { timeoutMs: call.timeoutMs, gone: around.gone });
}

async function follow(
  tree: Tree,
  readers: PipeReader[],
  { timeoutMs, gone }: { timeoutMs: number; gone: AbortSignal },
): Promise<Ran> {
  const read = Promise.allSettled(readers.map((reader) => reader.ended));
  const cut = await exitOrCut(tree, timeoutMs, gone);
  if (cut !== undefined) {
    tree.terminate();
    await tree.empty(limits.execKillGraceMs);
  } else {
    await within(read, limits.execDrainMs);
  }
  const leftovers = await tree.end();
  // All writers are dead and the pipes end, unless one was handed to a process of another command.
  if (!(await within(read, limits.execDrainMs))) for (const reader of readers) reader.stop();
  await read;
  // One that ended by itself, or at its time limit, keeps its answer.
  if (cut === "gone" && gone.reason instanceof BerthError) throw gone.reason;
  return { exit: await tree.exited, timedOut: cut === "timeout", leftovers };
}

function memoryFile(): number {
  try {
    return openMemory();
  } catch (error) {
    throw notMade(error);
  }
}

function openOutput(stdin: number | "ignore") {
  try {
    return openPipes(["stdout", "stderr"]);
  } catch (error) {
    if (stdin !== "ignore") closeSync(stdin);
    throw error;
  }
}

/** A file in memory holds it all at once: nothing waits for a command that does not read. */
function inputOf(call: AgentExecCall): number | "ignore" {
  if (call.stdin === undefined || call.stdin === "") return "ignore";
  const bytes = Buffer.from(call.stdin, call.encoding);
  const fd = memoryFile();
  let written = 0;
  while (written < bytes.length) {
    // At a position: the command then reads from the beginning.
    written += writeSync(fd, bytes, written, bytes.length - written, written);
  }
  return fd;
}
