/**
 * Owns the one line that says what a command waits for: on a terminal, never in a pipe and never with `--json`.
 * Does not own signals: whoever ends the command ends its progress.
 */
import yoctoSpinner from "yocto-spinner";

/** Where nothing needs to be told it is not even begun. */
const showAfterMs = 150;

export class Progress {
  readonly #show: boolean;
  #text = "";
  #spinner: ReturnType<typeof yoctoSpinner> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(show: boolean) {
    this.#show = show;
  }

  /** What is waited for now; it replaces what was told before. */
  tell(text: string): void {
    if (!this.#show) return;
    this.#text = text;
    if (this.#spinner !== undefined) this.#spinner.text = text;
    this.#timer ??= setTimeout(() => this.#begin(), showAfterMs);
  }

  /** Removes the line; `kept` stays in its place. */
  end(kept?: string): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#spinner?.stop();
    this.#spinner = undefined;
    if (kept !== undefined && this.#show) process.stderr.write(`${kept}\n`);
  }

  #begin(): void {
    const spinner = yoctoSpinner({
      text: this.#text,
      stream: process.stderr,
      handleSignals: false,
    });
    this.#spinner = spinner.start();
  }
}
