/** Runs one terminal from its start to its end: the PTY, the program in it, its output and its viewers. */
import type { AgentEnding, AgentTerminalCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type {
  Screen,
  Terminal as TerminalRecord,
  TerminalSize,
} from "../../../src/protocol/terminal.ts";
import type { SandboxEnv } from "../exec/sandbox-env.ts";
import { resourcesUnavailable } from "../kernel/pipes.ts";
import { resolvesWithin } from "../server/timeout.ts";
import { sendSignal } from "../supervision/proc-table.ts";
import {
  type Exit,
  KillTimeoutError,
  type ProcessSupervisor,
  type ProcessTree,
} from "../supervision/process-tree.ts";
import { Input } from "./input.ts";
import { Output } from "./output.ts";
import { resolveTerminalProgram, type TerminalProgram } from "./program.ts";
import { Pty } from "./pty.ts";
import { Ring } from "./ring.ts";
import type { ScreenSource } from "./screen/rendering.ts";
import type { ScreenSnapshot, Screens } from "./screen/screens.ts";
import type { Viewer } from "./viewer.ts";
import { Viewers } from "./viewers.ts";

export type TerminalDeps = {
  sandboxEnv: SandboxEnv;
  supervisor: ProcessSupervisor;
  screens: Screens;
};
type StartedTerminal = {
  id: string;
  pty: Pty;
  tree: ProcessTree;
  size: TerminalSize;
  argv: string[];
};
type Reason = NonNullable<AgentEnding["reason"]>;

/** The screen of a viewer whose snapshot was not rendered in time: this much of the newest output. */
const tailBytes = 64 * 1024;
const resetTerminal = Buffer.from("\x1bc");

let startCount = 0;

export class Terminal implements ScreenSource {
  readonly id: string;
  /** Unlike the id it is never used again. */
  readonly key: string;
  readonly ring = new Ring(limits.terminalRingBytes);
  readonly viewers: Viewers;
  /** Resolves when nothing is left: no process, no descriptor. */
  readonly over: Promise<void>;
  readonly #pty: Pty;
  readonly #tree: ProcessTree;
  readonly #argv: string[];
  readonly #createdAt = new Date().toISOString();
  readonly #screens: Screens;
  readonly #output: Output;
  readonly #input: Input;
  /** After `stop`: the tree is empty, or the grace period is over. */
  readonly #graceOver = Promise.withResolvers<void>();
  #size: TerminalSize;
  #isEnding = false;
  #reason: Reason = "exited";
  #exit: Exit | undefined;

  /** Throws if the call is refused; then no terminal is left. Synchronous until the program is started. */
  static async start(
    call: AgentTerminalCall,
    { sandboxEnv, supervisor, screens }: TerminalDeps,
  ): Promise<Terminal> {
    const { id, cols, rows } = call;
    const program = resolveTerminalProgram(call, sandboxEnv);
    const size = { cols, rows };
    const pty = openPty(size, program.user);
    try {
      const tree = await supervisor.start(launchIn(pty, program));
      return new Terminal({ id, pty, tree, size, argv: program.shownArgv }, screens);
    } catch (error) {
      pty.close();
      await pty.removed();
      throw error;
    }
  }

  private constructor({ id, pty, tree, size, argv }: StartedTerminal, screens: Screens) {
    this.id = id;
    this.key = `${id} ${startCount++}`;
    this.#pty = pty;
    this.#tree = tree;
    this.#size = size;
    this.#argv = argv;
    this.#screens = screens;
    this.viewers = new Viewers(this.ring, () => this.#output.recheck());
    this.#input = new Input(pty.master);
    this.#output = new Output(
      pty.master,
      () => this.#isEnding || this.viewers.mayRead(),
      (bytes) => this.#onOutput(bytes),
    );
    this.over = this.#runToEnd();
  }

  get size(): TerminalSize {
    return this.#size;
  }

  /** True from the exit of the program, or from `stop`: the id is about to be free. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** Set once all output is in the ring. */
  get exit(): Exit | undefined {
    return this.#exit;
  }

  get reason(): Reason {
    return this.#reason;
  }

  record(incarnation: string): TerminalRecord {
    return {
      id: this.id,
      pid: this.#tree.pid,
      ...this.#size,
      argv: this.#argv,
      createdAt: this.#createdAt,
      viewers: this.viewers.size,
      offset: this.ring.end,
      incarnation,
    };
  }

  /** False: refused, because too much input waits already. */
  writeInput(bytes: Uint8Array): boolean {
    return this.#input.write(bytes);
  }

  resize({ cols, rows }: TerminalSize, by?: Viewer): void {
    if (this.#exit !== undefined || (cols === this.#size.cols && rows === this.#size.rows)) return;
    this.#size = { cols, rows };
    this.#pty.resize(this.#size);
    this.#screens.onResize(this);
    this.viewers.sendSize(this.#size, by);
  }

  async snapshot(): Promise<ScreenSnapshot> {
    return (await this.#screens.snapshot(this)) ?? this.#tailSnapshot();
  }

  /** Undefined: not rendered in time. */
  screenText(): Promise<Screen | undefined> {
    return this.#screens.screenText(this);
  }

  /** More output may be read now. */
  onViewerAdvanced(): void {
    this.#output.recheck();
  }

  /** Sends HUP, because a shell ignores TERM, and TERM; KILL after the grace period. */
  stop(reason: Reason): Promise<void> {
    if (!this.#isEnding) {
      this.#isEnding = true;
      this.#reason = reason;
      this.#output.recheck();
      if (this.#tree.pid > 0) sendSignal(this.#tree.pid, "SIGHUP");
      this.#tree.terminate();
      this.#tree.waitUntilEmpty(limits.execKillGraceMs).then(this.#graceOver.resolve);
    }
    return this.over;
  }

  #onOutput(bytes: Uint8Array): void {
    this.ring.push(bytes);
    this.viewers.pump();
    this.#screens.onOutput(this);
  }

  #tailSnapshot(): ScreenSnapshot {
    const { start, end } = this.ring;
    const tail = this.ring.read(Math.max(start, end - tailBytes), end);
    return { bytes: Buffer.concat([resetTerminal, tail]), offset: end };
  }

  async #runToEnd(): Promise<void> {
    await Promise.race([this.#tree.exited, this.#graceOver.promise]);
    // After `stop`, processes that outlive the first one have the grace period too.
    if (this.#isEnding) await this.#graceOver.promise;
    this.#isEnding = true;
    this.#output.recheck();
    await this.#tree.end().catch(ignoreUnended);
    // All writers are dead, so the output ends, unless a process outside of the tree has the terminal open.
    this.#pty.closeSlave();
    if (!(await resolvesWithin(this.#output.ended, limits.execDrainMs))) await this.#output.stop();
    this.#input.close();
    this.#pty.close();
    await this.#pty.removed();
    const { exited } = this.#tree;
    this.#exit = (await resolvesWithin(exited, limits.execDrainMs)) ? await exited : unknownExit;
    this.viewers.finish(this.#exit);
    this.#screens.forget(this);
  }
}

/** The number of PTYs is limited, both in a sandbox and on a machine. */
function openPty(...args: ConstructorParameters<typeof Pty>): Pty {
  try {
    return new Pty(...args);
  } catch (error) {
    throw resourcesUnavailable(error);
  }
}

function launchIn({ slave }: Pty, { shownArgv: _, ...program }: TerminalProgram) {
  return { ...program, stdin: slave, stdout: slave, stderr: slave };
}

const unknownExit: Exit = { exitCode: null, signal: "SIGKILL" };

/** Killed, but the kernel still has a process: nothing more can be done, so the terminal is closed all the same. */
function ignoreUnended(error: unknown): void {
  if (!(error instanceof KillTimeoutError)) throw error;
}
