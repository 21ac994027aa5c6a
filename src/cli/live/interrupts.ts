/**
 * Owns what Ctrl-C, TERM and a closed terminal mean while a command holds or runs something: the first one asks it to
 * end, the second one insists, the third one ends the command itself.
 * Does not own what is done then.
 */
import { constants } from "node:os";

const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
export type Interrupt = (typeof names)[number];

/** The reason with which `asked` and `insisted` are aborted. */
export class Interrupted extends Error {
  readonly signal: Interrupt;

  constructor(signal: Interrupt) {
    super(`interrupted by ${signal}`);
    this.name = "Interrupted";
    this.signal = signal;
  }

  /** As a shell has it. */
  get exitCode(): number {
    return exitCodeOf(this.signal);
  }
}

export function exitCodeOf(signal: string): number {
  return 128 + (constants.signals[signal as NodeJS.Signals] ?? 0);
}

export class Interrupts implements Disposable {
  readonly #asked = new AbortController();
  readonly #insisted = new AbortController();
  readonly #hear = (signal: NodeJS.Signals) => this.#heard(signal as Interrupt);

  constructor() {
    for (const name of names) process.on(name, this.#hear);
  }

  get asked(): AbortSignal {
    return this.#asked.signal;
  }

  get insisted(): AbortSignal {
    return this.#insisted.signal;
  }

  /** The first one, if there was one. */
  get first(): Interrupted | undefined {
    return this.asked.aborted ? (this.asked.reason as Interrupted) : undefined;
  }

  [Symbol.dispose](): void {
    for (const name of names) process.off(name, this.#hear);
  }

  #heard(signal: Interrupt): void {
    const reason = new Interrupted(signal);
    if (this.insisted.aborted) process.exit(reason.exitCode);
    (this.asked.aborted ? this.#insisted : this.#asked).abort(reason);
  }
}
