/**
 * Owns one process from its start until all it started is gone: its pipes, its time limit, its record.
 * Does not own which processes there are (processes.ts), nor what is kept of its output (log.ts).
 */
import { closeSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentEnding } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { ProcessCall, Process as Shown, StdinTaken } from "../../../src/protocol/process.ts";
import { type Refusal, refusal } from "../exec/program.ts";
import { giveDescriptor } from "../kernel/libc.ts";
import { PipeReader } from "../kernel/pipe.ts";
import { openPipes } from "../kernel/pipes.ts";
import { within } from "../server/timeout.ts";
import {
  type Exit,
  type Forest,
  type Launch,
  type Tree,
  Unended,
} from "../supervision/process-tree.ts";
import { beginningOf, type Called } from "./called.ts";
import type { Following } from "./following.ts";
import { Log } from "./log.ts";
import { type Admit, type Input, Stdin } from "./stdin.ts";

/** What to run; its own input and output are made here. */
export type Program = Omit<Launch, "stdin" | "stdout" | "stderr">;

export type Known = {
  id: string;
  name: string | undefined;
  sessionId: string | undefined;
  called: Called;
  call: Pick<ProcessCall, "timeoutMs" | "logBytesMax" | "onFull">;
  cwd: string;
  logs: string;
};

type Ended = Exit & { timedOut: boolean; leftovers: number; endedAt: string };
export type Reason = AgentEnding["reason"];
type Cut = "timeout" | "told";

/** A limit for output that goes on coming from a pipe which somebody else holds. */
const drainsMax = 10;

export class Process {
  readonly known: Known;
  readonly log: Log;
  /** Of its log. */
  readonly followers = new Set<Following>();
  #startedAt = new Date().toISOString();
  readonly #told = Promise.withResolvers<void>();
  readonly #waiting = new Set<() => void>();
  readonly #over = Promise.withResolvers<void>();
  #tree: Tree | undefined;
  #stdin = new Stdin(undefined);
  #ended: Ended | undefined;
  #toldWhy: Reason | undefined;

  constructor(known: Known) {
    this.known = known;
    this.log = new Log(known.logs, known.call);
  }

  get id(): string {
    return this.known.id;
  }

  get isRunning(): boolean {
    return this.#ended === undefined;
  }

  /** Resolves when nothing of it is left and all it wrote is in the log. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  /** What was taken already may be written again, whatever became of the process. */
  write(input: Input, admit: Admit): Promise<StdinTaken> {
    return this.#stdin.write(input, admit);
  }

  /** Calls `done` then, or soon where it is over already; the answer takes that back. */
  whenOver(done: () => void): () => void {
    if (this.isRunning) this.#waiting.add(done);
    else queueMicrotask(done);
    return () => this.#waiting.delete(done);
  }

  get exit(): Ended | undefined {
    return this.#ended;
  }

  get reason(): Reason {
    if (this.#ended?.timedOut) return "timed_out";
    return this.#toldWhy ?? "exited";
  }

  /** Resolves once it runs, or has ended because it cannot; synchronous until it is started. */
  async begin(program: Program | Refusal, forest: Forest): Promise<void> {
    this.#startedAt = new Date().toISOString();
    if (!("program" in program)) {
      this.#refuse(program);
      return;
    }
    const pipes = openPipes(["stdin", "stdout", "stderr"]);
    const [stdinRead, stdinWrite] = pipes.stdin;
    const [stdoutRead, stdout] = pipes.stdout;
    const [stderrRead, stderr] = pipes.stderr;
    try {
      const { user } = program;
      if (user !== undefined)
        for (const fd of [stdinRead, stdout, stderr]) giveDescriptor(fd, user);
      this.#tree = await forest.start({ ...program, stdin: stdinRead, stdout, stderr });
    } catch (error) {
      for (const fd of [stdinWrite, stdoutRead, stderrRead]) closeSync(fd);
      const { code } = error as NodeJS.ErrnoException;
      if (code === undefined || error instanceof BerthError) throw error;
      this.#refuse(refusal(program.argv[0] ?? program.program, code));
      return;
    } finally {
      for (const fd of [stdinRead, stdout, stderr]) closeSync(fd);
    }
    this.#stdin = new Stdin(stdinWrite);
    const readers = [
      new PipeReader(stdoutRead, (bytes) => this.log.write("stdout", bytes)),
      new PipeReader(stderrRead, (bytes) => this.log.write("stderr", bytes)),
    ];
    this.#follow(this.#tree, readers).catch((error) => {
      // Nobody else hears of it: the record says that it is gone, the log why.
      console.error(`process ${this.id}:`, error);
      this.#finish({ exitCode: null, signal: "SIGKILL", timedOut: false, leftovers: 0 });
    });
  }

  /** Of one that has ended: nothing. */
  signal(name: NodeJS.Signals): void {
    if (this.isRunning) this.#tree?.signal(name);
  }

  /** TERM to the whole tree, KILL after the grace. */
  end(why: Reason = "ended"): Promise<void> {
    if (this.isRunning) this.#toldWhy ??= why;
    this.#told.resolve();
    return this.over;
  }

  /** It did not begin, by a fault of ours. */
  fail(): void {
    this.log.close();
    this.#finish({ exitCode: null, signal: null, timedOut: false, leftovers: 0 });
  }

  record(incarnation: string): Shown {
    return this.#record(incarnation, this.known.called);
  }

  /** As lists have it. */
  listed(incarnation: string): Shown {
    return this.#record(incarnation, beginningOf(this.known.called));
  }

  #record(incarnation: string, called: Called): Shown {
    const { cwd, name, sessionId } = this.known;
    const { log } = this;
    return {
      id: this.id,
      ...(name === undefined ? {} : { name }),
      pid: this.#tree?.pid ?? null,
      state: this.isRunning ? "running" : "exited",
      ...called,
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
      stdin: this.#stdin.taken,
      incarnation,
    };
  }

  async #follow(tree: Tree, readers: PipeReader[]): Promise<void> {
    const read = Promise.allSettled(readers.map((reader) => reader.ended));
    const cut = await this.#exitOrCut(tree);
    if (cut !== undefined) {
      tree.terminate();
      // One that is stopped could not see it.
      tree.signal("SIGCONT");
      await tree.empty(limits.execKillGraceMs);
    } else {
      await within(read, limits.execDrainMs);
    }
    const leftovers = await endOf(tree);
    this.log.lift();
    await this.#drain(read);
    for (const reader of readers) reader.stop();
    this.log.close();
    await read;
    this.#finish({ ...(await tree.exited), timedOut: cut === "timeout", leftovers });
  }

  /** Why it must be ended; undefined: it ended by itself. */
  #exitOrCut(tree: Tree): Promise<Cut | undefined> {
    const { timeoutMs } = this.known.call;
    return new Promise((resolve) => {
      const timer =
        timeoutMs === undefined ? undefined : setTimeout(() => done("timeout"), timeoutMs);
      tree.exited.then(() => done(undefined));
      this.#told.promise.then(() => done("told"));
      function done(why: Cut | undefined): void {
        clearTimeout(timer);
        resolve(why);
      }
    });
  }

  /** All writers are dead and the pipes end, unless one was handed to a process of another command. */
  async #drain(read: Promise<unknown>): Promise<void> {
    for (let n = 0; n < drainsMax; n += 1) {
      const before = this.log.end;
      if (await within(read, limits.execDrainMs)) return;
      // What came meanwhile may wait behind the timer.
      await new Promise((resolve) => setImmediate(resolve));
      if (this.log.end === before) return;
    }
  }

  #refuse({ exitCode, line }: Refusal): void {
    this.log.write("stderr", Buffer.from(line));
    this.log.close();
    this.#finish({ exitCode, signal: null, timedOut: false, leftovers: 0 });
  }

  #finish(ended: Omit<Ended, "endedAt">): void {
    this.#stdin.close();
    this.log.close();
    this.#ended = { ...ended, endedAt: new Date().toISOString() };
    this.#over.resolve();
    for (const done of [...this.#waiting]) done();
  }
}

/** However long the kernel takes: it runs until nothing of it is left. */
async function endOf(tree: Tree): Promise<number> {
  try {
    return await tree.end();
  } catch (error) {
    if (!(error instanceof Unended)) throw error;
    await error.gone;
    return 0;
  }
}
