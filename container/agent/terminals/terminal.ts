/**
 * Owns one terminal from its start to its end: the PTY, what runs in it, what it wrote.
 * Does not own which terminals there are (roster.ts) nor who watches (audience.ts).
 */
import type { AgentEnding, AgentTerminalCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Screen, Terminal as TerminalRecord } from "../../../src/protocol/terminal.ts";
import type { Place } from "../exec/sandbox-env.ts";
import { notMade } from "../kernel/pipes.ts";
import { within } from "../server/timeout.ts";
import { send } from "../supervision/proc-table.ts";
import { type Exit, type Forest, type Tree, Unended } from "../supervision/process-tree.ts";
import { Input } from "./input.ts";
import { Output } from "./output.ts";
import { type Drawer, type Drawn, tailOf } from "./picture.ts";
import { type Program, programOf } from "./program.ts";
import { Pty, type Size } from "./pty.ts";
import { Ring } from "./ring.ts";
import type { Picture, Stage, Viewer } from "./viewer.ts";
import { Audience } from "./viewers.ts";

export type Around = { place: Place; forest: Forest; drawer: Drawer | undefined };
type Made = { id: string; pty: Pty; tree: Tree; size: Size; argv: string[] };
type Reason = AgentEnding["reason"];

let made = 0;

export class Terminal implements Stage, Drawn {
  readonly id: string;
  /** Of this one alone, also among those that had its id before. */
  readonly key: string;
  readonly ring = new Ring(limits.terminalRingBytes);
  readonly audience: Audience;
  /** Resolves when nothing of it is left: processes, descriptors. */
  readonly over: Promise<void>;
  readonly #pty: Pty;
  readonly #tree: Tree;
  readonly #argv: string[];
  readonly #createdAt = new Date().toISOString();
  readonly #drawer: Drawer | undefined;
  readonly #output: Output;
  readonly #input: Input;
  /** Told to end: none is left, or the grace is over. */
  readonly #graceOver = Promise.withResolvers<void>();
  #size: Size;
  #isEnding = false;
  #reason: Reason = "exited";
  #exit: Exit | undefined;

  /** Throws what refuses the call, with no terminal left. Synchronous until the process is started. */
  static async start(
    call: AgentTerminalCall,
    { place, forest, drawer }: Around,
  ): Promise<Terminal> {
    const { id, cols, rows } = call;
    const program = programOf(call, place);
    const size = { cols, rows };
    const pty = ptyOf(size, place.user);
    try {
      const tree = await forest.start(launchIn(pty, program));
      return new Terminal({ id, pty, tree, size, argv: program.asked }, drawer);
    } catch (error) {
      pty.close();
      await pty.gone();
      throw error;
    }
  }

  private constructor({ id, pty, tree, size, argv }: Made, drawer: Drawer | undefined) {
    this.id = id;
    this.key = `${id} ${made++}`;
    this.#pty = pty;
    this.#tree = tree;
    this.#size = size;
    this.#argv = argv;
    this.#drawer = drawer;
    this.audience = new Audience(this.ring, () => this.moved());
    this.#input = new Input(pty.master);
    this.#output = new Output(
      pty.master,
      () => this.#isEnding || this.audience.mayRead(),
      (bytes) => this.#take(bytes),
    );
    this.over = this.#live();
  }

  get size(): Size {
    return this.#size;
  }

  get cols(): number {
    return this.#size.cols;
  }

  get rows(): number {
    return this.#size.rows;
  }

  get start(): number {
    return this.ring.start;
  }

  get end(): number {
    return this.ring.end;
  }

  read(from: number, to: number): Uint8Array {
    return this.ring.read(from, to);
  }

  /** From the exit of its program, or the word to end it: its id is about to be free. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** Once all it wrote is in the ring. */
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
      viewers: this.audience.size,
      offset: this.ring.end,
      incarnation,
    };
  }

  /** False: refused, too much waits already. */
  type(bytes: Uint8Array): boolean {
    return this.#input.write(bytes);
  }

  resize(size: Size, by?: Viewer): void {
    const { cols, rows } = size;
    if (this.#exit !== undefined || (cols === this.#size.cols && rows === this.#size.rows)) return;
    this.#size = { cols, rows };
    this.#pty.resize(this.#size);
    this.#drawer?.resized(this);
    this.audience.tellSize(by);
  }

  async draw(): Promise<Picture> {
    return (await this.#drawer?.picture(this)) ?? tailOf(this.ring);
  }

  /** Undefined: it could not be drawn in time. */
  async look(): Promise<Screen | undefined> {
    return this.#drawer?.look(this);
  }

  moved(): void {
    this.#output.look();
  }

  /** HUP, which is what a shell listens to, and TERM; after the grace KILL. */
  stop(reason: Reason): Promise<void> {
    if (!this.#isEnding) {
      this.#isEnding = true;
      this.#reason = reason;
      this.moved();
      if (this.#tree.pid > 0) send(this.#tree.pid, "SIGHUP");
      this.#tree.terminate();
      this.#tree.empty(limits.execKillGraceMs).then(this.#graceOver.resolve);
    }
    return this.over;
  }

  #take(bytes: Uint8Array): void {
    this.ring.push(bytes);
    this.audience.pump();
    this.#drawer?.written(this);
  }

  async #live(): Promise<void> {
    await Promise.race([this.#tree.exited, this.#graceOver.promise]);
    // What is left when the first process has gone has the grace too.
    if (this.#isEnding) await this.#graceOver.promise;
    this.#isEnding = true;
    this.moved();
    await this.#tree.end().catch(orUnended);
    // All who wrote are dead: the output ends, unless a process outside of the tree was handed the terminal.
    this.#pty.closeSlave();
    if (!(await within(this.#output.ended, limits.execDrainMs))) await this.#output.stop();
    this.#input.close();
    this.#pty.close();
    await this.#pty.gone();
    const { exited } = this.#tree;
    this.#exit = (await within(exited, limits.execDrainMs)) ? await exited : unknownExit;
    this.audience.finish(this.#exit);
    this.#drawer?.forget(this);
  }
}

/** There is an end to them, in a sandbox and on a machine. */
function ptyOf(...made: ConstructorParameters<typeof Pty>): Pty {
  try {
    return new Pty(...made);
  } catch (error) {
    throw notMade(error);
  }
}

function launchIn({ slave }: Pty, { asked: _, ...program }: Program) {
  return { ...program, stdin: slave, stdout: slave, stderr: slave };
}

const unknownExit: Exit = { exitCode: null, signal: "SIGKILL" };

/** Killed, but the kernel has not let go of it: nothing more can be done, and the terminal is given back. */
function orUnended(error: unknown): void {
  if (!(error instanceof Unended)) throw error;
}
