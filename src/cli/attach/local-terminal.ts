/** Gives the user's own terminal to a remote program, and restores it however this command ends (but `kill -9`). */
import { toPlainLine } from "../output/plain-text.ts";
import { ScreenModes } from "./screen-modes.ts";

export type Size = { cols: number; rows: number };

type TerminalStreams = { stdin: NodeJS.ReadStream; stdout: NodeJS.WriteStream };

export class LocalTerminal implements Disposable {
  readonly #stdin: NodeJS.ReadStream;
  readonly #stdout: NodeJS.WriteStream;
  readonly #modes = new ScreenModes();
  readonly #onExit = () => this.restore();
  readonly #listeners: (() => void)[] = [];
  #isRaw = false;

  constructor({ stdin, stdout }: TerminalStreams) {
    this.#stdin = stdin;
    this.#stdout = stdout;
  }

  /** Switches to raw mode: keys go to `typed` and have no effect here. */
  start(typed: (bytes: Uint8Array) => void, resized: (size: Size) => void): void {
    process.on("exit", this.#onExit);
    this.#stdin.setRawMode(true);
    this.#isRaw = true;
    const resize = () => resized(this.size);
    this.#stdin.on("data", typed);
    this.#stdout.on("resize", resize);
    this.#listeners.push(
      () => this.#stdin.off("data", typed),
      () => this.#stdout.off("resize", resize),
    );
    this.#stdin.resume();
  }

  get size(): Size {
    return { cols: this.#stdout.columns || 80, rows: this.#stdout.rows || 24 };
  }

  /** Resolves when the terminal can take more output. */
  show(bytes: Uint8Array): Promise<void> {
    this.#modes.see(bytes);
    return new Promise((resolve) => this.#stdout.write(bytes, () => resolve()));
  }

  /** Prints a line of our own, wherever the cursor is. */
  printLine(text: string): void {
    this.#stdout.write(`\r\n${toPlainLine(text)}\r\n`);
  }

  restore(): void {
    if (!this.#isRaw) return;
    this.#isRaw = false;
    for (const stop of this.#listeners.splice(0)) stop();
    process.off("exit", this.#onExit);
    this.#stdout.write(this.#modes.restore());
    this.#stdin.setRawMode(false);
    this.#stdin.pause();
  }

  [Symbol.dispose](): void {
    this.restore();
  }
}
