/**
 * Owns the word to a person who waits for others: for whom, and how many come before.
 * Does not own waiting. Nothing is said of a wait that is over before anybody wonders, and nothing with `--json`.
 */
import type { Context } from "../context.ts";

const tellsAfterMs = 500;

export class Waiting {
  readonly #context: Context;
  #position = 0;
  #holder: () => Promise<string | undefined> = async () => undefined;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;
  #isTold = false;

  constructor(context: Context) {
    this.#context = context;
  }

  at(position: number, holder: () => Promise<string | undefined>): void {
    this.#position = position;
    this.#holder = holder;
    this.#timer ??= setTimeout(() => this.#tell(), tellsAfterMs);
    if (this.#isTold && this.#context.tty) this.#tell();
  }

  connection(state: "lost" | "back"): void {
    const { json, tty, progress, output } = this.#context;
    if (json) return;
    const text = state === "lost" ? "connection lost; trying again" : "connected again";
    if (tty) progress.tell(text);
    else output.say(text);
  }

  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#context.progress.end();
  }

  async #tell(): Promise<void> {
    this.#isTold = true;
    if (this.#context.json) return;
    const holder = await this.#holder();
    if (this.#isOver) return;
    const before = this.#position === 0 ? "" : `, ${this.#position} before this one`;
    const text = `waiting for ${holder ?? "the sandbox"} to finish${before}`;
    if (this.#context.tty) this.#context.progress.tell(text);
    else this.#context.output.say(text);
  }
}
