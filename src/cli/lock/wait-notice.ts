/**
 * Tells a user who waits for the lease who holds it and how many come first. Says nothing about a short wait, and
 * nothing with `--json`.
 */
import type { Context } from "../context.ts";

const noticeDelayMs = 500;

export class WaitNotice {
  readonly #context: Context;
  #position = 0;
  #holder: () => Promise<string | undefined> = async () => undefined;
  #timer: NodeJS.Timeout | undefined;
  #hasEnded = false;
  #isShown = false;

  constructor(context: Context) {
    this.#context = context;
  }

  queued(position: number, holder: () => Promise<string | undefined>): void {
    this.#position = position;
    this.#holder = holder;
    this.#timer ??= setTimeout(() => this.#print(), noticeDelayMs);
    if (this.#isShown && this.#context.tty) this.#print();
  }

  connection(state: "lost" | "back"): void {
    const { json, tty, progress, output } = this.#context;
    if (json) return;
    const text = state === "lost" ? "Connection lost; reconnecting" : "Connected again";
    if (tty) progress.show(text);
    else output.info(text);
  }

  end(): void {
    this.#hasEnded = true;
    clearTimeout(this.#timer);
    this.#context.progress.end();
  }

  async #print(): Promise<void> {
    this.#isShown = true;
    if (this.#context.json) return;
    const holder = await this.#holder();
    if (this.#hasEnded) return;
    const others = this.#position === 0 ? "" : `, ${this.#position} before this one`;
    const text = `Waiting for ${holder ?? "the sandbox"} to finish${others}`;
    if (this.#context.tty) this.#context.progress.show(text);
    else this.#context.output.info(text);
  }
}
