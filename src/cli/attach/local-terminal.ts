/**
 * Owns the person's own terminal while it belongs to a remote program: raw keys, size, and that it is given back as it
 * was, however this command ends.
 * Does not own what is shown on it. Only `kill -9` cannot be made up for.
 */
import { ScreenModes } from "./screen-modes.ts";

export type Size = { cols: number; rows: number };

type World = { stdin: NodeJS.ReadStream; stdout: NodeJS.WriteStream };

export class LocalTerminal implements Disposable {
  readonly #stdin: NodeJS.ReadStream;
  readonly #stdout: NodeJS.WriteStream;
  readonly #modes = new ScreenModes();
  readonly #atExit = () => this.restore();
  readonly #told: (() => void)[] = [];
  #isRaw = false;

  constructor({ stdin, stdout }: World) {
    this.#stdin = stdin;
    this.#stdout = stdout;
  }

  /** From here on keys are bytes for `typed`, and nothing is done with them here. */
  take(typed: (bytes: Uint8Array) => void, resized: (size: Size) => void): void {
    process.on("exit", this.#atExit);
    this.#stdin.setRawMode(true);
    this.#isRaw = true;
    const resize = () => resized(this.size);
    this.#stdin.on("data", typed);
    this.#stdout.on("resize", resize);
    this.#told.push(
      () => this.#stdin.off("data", typed),
      () => this.#stdout.off("resize", resize),
    );
    this.#stdin.resume();
  }

  get size(): Size {
    return { cols: this.#stdout.columns || 80, rows: this.#stdout.rows || 24 };
  }

  /** Resolves when there is room for more. */
  show(bytes: Uint8Array): Promise<void> {
    this.#modes.see(bytes);
    return new Promise((resolve) => this.#stdout.write(bytes, () => resolve()));
  }

  /** A line of ours, wherever the cursor stands. */
  say(text: string): void {
    this.#stdout.write(`\r\n${text}\r\n`);
  }

  restore(): void {
    if (!this.#isRaw) return;
    this.#isRaw = false;
    for (const stop of this.#told.splice(0)) stop();
    process.off("exit", this.#atExit);
    this.#stdout.write(this.#modes.restore());
    this.#stdin.setRawMode(false);
    this.#stdin.pause();
  }

  [Symbol.dispose](): void {
    this.restore();
  }
}
