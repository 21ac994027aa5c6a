/** Terminals of a sandbox, and the handle of one. */
import type {
  Screen,
  TerminalEnded,
  Terminal as TerminalInfo,
  TerminalInput,
  TerminalSize,
} from "../../protocol/terminal.ts";
import type { CallOptions, ChangeOptions } from "../http/request.ts";
import { type Page, toPage } from "../page.ts";
import type { Target } from "../target.ts";
import { type AttachOptions, LiveTerminal } from "../terminal/terminal.ts";

/** A handle of a terminal whose facts are known. */
export type KnownTerminal = Terminal & { readonly info: TerminalInfo };

/** Terminals: pseudo-terminals with a screen. */
export class Terminals {
  readonly #target: Target;

  /** @internal */
  constructor(target: Target) {
    this.#target = target;
  }

  /**
   * Creates a terminal. With an `id` it returns the terminal if it exists.
   *
   * @example
   * ```ts
   * const terminal = await sandbox.terminals.create({ cols: 120, rows: 40 });
   * await using live = await terminal.attach();
   * live.write("ls\n");
   * ```
   */
  async create(input: TerminalInput = {}, options: ChangeOptions = {}): Promise<KnownTerminal> {
    const info = await this.#target.sandbox.createTerminal(input, options);
    return new Terminal(this.#target, info.id, info) as KnownTerminal;
  }

  /** A terminal by its id. */
  async get(id: string, options: CallOptions = {}): Promise<KnownTerminal> {
    const info = await this.#target.sandbox.terminal(id, options);
    return new Terminal(this.#target, id, info) as KnownTerminal;
  }

  /** All terminals. Never starts a container. */
  async list(options: CallOptions = {}): Promise<Page<TerminalInfo>> {
    const { terminals, nextCursor } = await this.#target.sandbox.terminals(options);
    return toPage(terminals, { nextCursor });
  }
}

/** One terminal. `sandbox.terminals.create`, `sandbox.terminals.get` and `sandbox.terminal` return it. */
export class Terminal {
  /** The id, for `sandbox.terminal` in another program. */
  readonly id: string;
  /** What Berth said when the handle was made; undefined if it was made without a request. */
  readonly info: TerminalInfo | undefined;
  readonly #target: Target;

  /** @internal */
  constructor(target: Target, id: string, info?: TerminalInfo) {
    this.id = id;
    this.info = info;
    this.#target = target;
  }

  /** Asks for the size and the other facts. */
  get(options: CallOptions = {}): Promise<TerminalInfo> {
    return this.#target.sandbox.terminal(this.id, options);
  }

  /**
   * Attaches to the terminal: iterate over the result for its output, and call its `write` for input. After a lost
   * connection it continues where it was, or with the current screen.
   */
  attach(options: AttachOptions = {}): Promise<LiveTerminal> {
    return LiveTerminal.attach(this.#target, this.id, options);
  }

  /** The visible text. */
  screen(options: CallOptions = {}): Promise<Screen> {
    return this.#target.sandbox.terminalScreen(this.id, options);
  }

  /** Sets the size in columns and rows, for all viewers. */
  resize(size: TerminalSize, options: CallOptions = {}): Promise<TerminalInfo> {
    return this.#target.sandbox.resizeTerminal(this.id, { ...size, ...options });
  }

  /** Ends the terminal and everything that runs in it. */
  delete(options: CallOptions = {}): Promise<TerminalEnded> {
    return this.#target.sandbox.endTerminal(this.id, options);
  }
}
