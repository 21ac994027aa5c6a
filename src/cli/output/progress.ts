/** Shows what a command waits for in one line on a terminal; never in a pipe, never with `--json`. */
import yoctoSpinner from "yocto-spinner";

/** A wait shorter than this shows nothing. */
const showAfterMs = 150;

export class Progress {
  readonly #show: boolean;
  #text = "";
  #spinner: ReturnType<typeof yoctoSpinner> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(show: boolean) {
    this.#show = show;
  }

  /** Shows what the command waits for now, in place of the previous text. */
  show(text: string): void {
    if (!this.#show) return;
    this.#text = text;
    if (this.#spinner !== undefined) this.#spinner.text = text;
    this.#timer ??= setTimeout(() => this.#begin(), showAfterMs);
  }

  /** Removes the line. */
  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#spinner?.stop();
    this.#spinner = undefined;
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
