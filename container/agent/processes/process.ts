/** Runs one process: its pipes, time limit and record, until nothing of its tree is left. See log.ts for its output. */
import { closeSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentEnding } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type {
  ProcessCall,
  Process as ProcessRecord,
  StdinTaken,
} from "../../../src/protocol/process.ts";
import { waitForExit } from "../exec/command.ts";
import { type StartFailure, startFailure } from "../exec/program.ts";
import { chownDescriptor } from "../kernel/libc.ts";
import { PipeReader } from "../kernel/pipe.ts";
import { openPipes } from "../kernel/pipes.ts";
import { resolvesWithin } from "../server/timeout.ts";
import {
  type Exit,
  KillTimeoutError,
  type Launch,
  type ProcessSupervisor,
  type ProcessTree,
} from "../supervision/process-tree.ts";
import { abridge, type CommandText } from "./command-text.ts";
import { Log } from "./log.ts";
import type { LogFollower } from "./log-follower.ts";
import { type Admit, type Input, Stdin } from "./stdin.ts";

/** What to run. The process opens the pipes itself. */
export type Program = Omit<Launch, "stdin" | "stdout" | "stderr">;

type ProcessInfo = {
  id: string;
  name: string | undefined;
  sessionId: string | undefined;
  commandText: CommandText;
  options: Pick<
    ProcessCall,
    "timeoutMs" | "logBytesMax" | "onFull" | "stdin" | "leftovers" | "endsWithReader"
  >;
  cwd: string;
  logsFolder: string;
};

type Ended = Exit & { timedOut: boolean; leftovers: number; endedAt: string };
type ExitReason = NonNullable<AgentEnding["reason"]>;

/** Bounds the wait for output from a pipe that a process of another command holds open. */
const drainRoundsMax = 10;

export class Process {
  readonly info: ProcessInfo;
  readonly log: Log;
  readonly followers = new Set<LogFollower>();
  #startedAt = new Date().toISOString();
  readonly #endRequest = new AbortController();
  readonly #exitListeners = new Set<() => void>();
  readonly #over = Promise.withResolvers<void>();
  #tree: ProcessTree | undefined;
  #stdin = new Stdin(undefined);
  #ended: Ended | undefined;
  #endReason: ExitReason | undefined;
  /** The first process has exited; its pid may soon be another's. */
  #hasExited = false;
  #hasLeftovers = false;

  constructor(info: ProcessInfo) {
    this.info = info;
    this.log = new Log(info.logsFolder, info.options);
  }

  get id(): string {
    return this.info.id;
  }

  get isRunning(): boolean {
    return this.#ended === undefined;
  }

  /** Resolves when no process of the tree is left and the log has all output. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  /** Bytes that were accepted before may be sent again, also after the exit. */
  write(input: Input, admit: Admit): Promise<StdinTaken> {
    return this.#stdin.write(input, admit);
  }

  /** Calls `done` after the exit, or soon if it has exited. Returns a function that removes the listener. */
  onExit(done: () => void): () => void {
    if (this.isRunning) this.#exitListeners.add(done);
    else queueMicrotask(done);
    return () => this.#exitListeners.delete(done);
  }

  get exit(): Ended | undefined {
    return this.#ended;
  }

  get reason(): ExitReason {
    if (this.#ended?.timedOut) return "timed_out";
    return this.#endReason ?? "exited";
  }

  /** Resolves once the process runs, or has exited because it cannot start. Synchronous until it is started. */
  async start(program: Program | StartFailure, supervisor: ProcessSupervisor): Promise<void> {
    this.#startedAt = new Date().toISOString();
    if (!("program" in program)) {
      this.#failToStart(program);
      return;
    }
    const pipes = openPipes(["stdin", "stdout", "stderr"]);
    const [stdinRead, stdinWrite] = pipes.stdin;
    const [stdoutRead, stdout] = pipes.stdout;
    const [stderrRead, stderr] = pipes.stderr;
    try {
      const { user } = program;
      if (user !== undefined)
        for (const fd of [stdinRead, stdout, stderr]) chownDescriptor(fd, user);
      this.#tree = await supervisor.start({ ...program, stdin: stdinRead, stdout, stderr });
    } catch (error) {
      for (const fd of [stdinWrite, stdoutRead, stderrRead]) closeSync(fd);
      const { code } = error as NodeJS.ErrnoException;
      if (code === undefined || error instanceof BerthError) throw error;
      this.#failToStart(startFailure(program.argv[0] ?? program.program, code));
      return;
    } finally {
      for (const fd of [stdinRead, stdout, stderr]) closeSync(fd);
    }
    this.#stdin = new Stdin(stdinWrite);
    if (this.info.options.stdin === "none") this.#stdin.close();
    const readers = [
      new PipeReader(stdoutRead, (bytes) => this.log.write("stdout", bytes)),
      new PipeReader(stderrRead, (bytes) => this.log.write("stderr", bytes)),
    ];
    this.#runToEnd(this.#tree, readers).catch((error) => {
      // Nobody awaits this: the record shows that the process is gone, the agent's own log why.
      console.error(`process ${this.id}:`, error);
      this.#finish({ exitCode: null, signal: "SIGKILL" });
    });
  }

  /** Does nothing after the exit. */
  signal(name: NodeJS.Signals): void {
    if (this.isRunning) this.#tree?.signal(name);
  }

  /** Does nothing after the exit, also while its descendants still hold its output open. */
  signalAlone(name: NodeJS.Signals): void {
    if (!this.isRunning || this.#tree === undefined || this.#hasExited) return;
    process.kill(this.#tree.pid, name);
  }

  /** Whether it has exited and what it left behind still runs. */
  get hasLeftovers(): boolean {
    return this.#hasLeftovers;
  }

  async endLeftovers(): Promise<void> {
    if (this.#tree !== undefined) await endTree(this.#tree);
  }

  /** Sends TERM to the whole tree, and KILL after the grace period. */
  end(why: ExitReason = "ended"): Promise<void> {
    if (this.isRunning) this.#endReason ??= why;
    this.#endRequest.abort();
    return this.over;
  }

  /** Closes a process that could not be started because of an internal error. */
  fail(): void {
    this.#finish({ exitCode: null, signal: null });
  }

  /** As lists have it. */
  listed(incarnation: string): ProcessRecord {
    return this.record(incarnation, abridge(this.info.commandText));
  }

  record(incarnation: string, commandText = this.info.commandText): ProcessRecord {
    const { cwd, name, sessionId } = this.info;
    const { log } = this;
    return {
      id: this.id,
      ...(name === undefined ? {} : { name }),
      pid: this.#tree?.pid ?? null,
      state: this.isRunning ? "running" : "exited",
      ...commandText,
      cwd,
      ...(sessionId === undefined ? {} : { sessionId }),
      startedAt: this.#startedAt,
      ...this.#ended,
      log: {
        start: log.start,
        end: log.end,
        stdoutBytes: log.runs.total("stdout"),
        stderrBytes: log.runs.total("stderr"),
        bytesMax: log.bytesMax,
        onFull: log.onFull,
      },
      stdin: this.#stdin.state,
      incarnation,
    };
  }

  async #runToEnd(tree: ProcessTree, readers: PipeReader[]): Promise<void> {
    const read = Promise.allSettled(readers.map((reader) => reader.ended));
    const { timeoutMs, leftovers: whatIsLeft } = this.info.options;
    tree.exited.then(() => {
      this.#hasExited = true;
    });
    const isKept = whatIsLeft === "keep";
    const end = isKept ? { exited: Promise.all([tree.exited, read]) } : tree;
    const cause = await waitForExit(end, timeoutMs, this.#endRequest.signal);
    if (isKept && cause === undefined) {
      await this.#finishWithoutTree(tree);
      return;
    }
    if (cause !== undefined) {
      tree.terminate();
      // A stopped process would not receive TERM.
      tree.signal("SIGCONT");
      await tree.waitUntilEmpty(limits.execKillGraceMs);
    } else {
      await resolvesWithin(read, limits.execDrainMs);
    }
    const leftovers = await endTree(tree);
    this.log.unblock();
    await this.#drain(read);
    for (const reader of readers) reader.stop();
    this.log.close();
    await read;
    this.#finish({ ...(await tree.exited), timedOut: cause === "timeout", leftovers });
  }

  /** What the process left behind runs on until the container stops. Its group is removed once it is empty. */
  async #finishWithoutTree(tree: ProcessTree): Promise<void> {
    const exit = await tree.exited;
    this.#hasLeftovers = true;
    this.#finish(exit);
    await tree.releaseWhenEmpty();
    this.#hasLeftovers = false;
  }

  /** All writers are dead, so the pipes end, unless a process of another command has one open. */
  async #drain(read: Promise<unknown>): Promise<void> {
    for (let n = 0; n < drainRoundsMax; n += 1) {
      const before = this.log.end;
      if (await resolvesWithin(read, limits.execDrainMs)) return;
      // Output that has come may be queued behind the timer.
      await new Promise((resolve) => setImmediate(resolve));
      if (this.log.end === before) return;
    }
  }

  #failToStart({ exitCode, line }: StartFailure): void {
    this.log.write("stderr", Buffer.from(line));
    this.#finish({ exitCode, signal: null });
  }

  #finish({ exitCode, signal, timedOut = false, leftovers = 0 }: Exit & Partial<Ended>): void {
    this.#stdin.close();
    this.log.close();
    const endedAt = new Date().toISOString();
    this.#ended = { exitCode, signal, timedOut, leftovers, endedAt };
    this.#over.resolve();
    for (const done of [...this.#exitListeners]) done();
  }
}

/** Waits however long the kernel takes, because the process counts as running while anything of it is left. */
async function endTree(tree: ProcessTree): Promise<number> {
  try {
    return await tree.end();
  } catch (error) {
    if (!(error instanceof KillTimeoutError)) throw error;
    await error.ended;
    return 0;
  }
}
