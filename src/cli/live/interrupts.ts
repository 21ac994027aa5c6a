/**
 * Owns what Ctrl-C, TERM and a closed terminal mean while a command holds or runs something: the first one asks it to
 * end, the second one insists, the third one ends the command itself. Output that cannot be written any more asks too.
 * Does not own what is done then.
 */
import { constants } from "node:os";

const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** SIGPIPE comes from nobody: it stands for output that cannot be written. */
export type Interrupt = (typeof names)[number] | "SIGPIPE";

/** The reason with which `asked` and `insisted` are aborted. */
export class Interrupted extends Error {
  readonly signal: Interrupt;
  /** Why output could not be written; nothing where its reader has only gone. */
  readonly unwritten: string | undefined;

  constructor(signal: Interrupt, unwritten?: string) {
    super(`interrupted by ${signal}`);
    this.name = "Interrupted";
    this.signal = signal;
    this.unwritten = unwritten;
  }

  /** As a shell has it. */
  get exitCode(): number {
    return this.unwritten === undefined ? exitCodeOf(this.signal) : 1;
  }
}

/** With `--json`, where nothing else is told. */
export function interruptedDocument(signal: string): { error: Record<string, unknown> } {
  return { error: { code: "interrupted", message: `ended by ${signal}`, signal } };
}

export function exitCodeOf(signal: string): number {
  return 128 + (constants.signals[signal as NodeJS.Signals] ?? 0);
}

export class Interrupts implements Disposable {
  readonly #asked = new AbortController();
  readonly #insisted = new AbortController();
  readonly #hear = (signal: NodeJS.Signals) => this.#heard(signal as Interrupt);
  readonly #lose = (error: NodeJS.ErrnoException) => this.#lost(error);
  readonly #outputs: NodeJS.WriteStream[];
  readonly #left = new Set<Interrupt>();

  /** `outputs`: those whose loss is the end of what is done. */
  constructor(...outputs: NodeJS.WriteStream[]) {
    this.#outputs = outputs;
    for (const name of names) process.on(name, this.#hear);
    for (const output of outputs) output.on("error", this.#lose);
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

  /** From here on that one is the affair of a program that hears it as well: it asks for nothing, and ends nothing. */
  leave(signal: Interrupt): void {
    this.#left.add(signal);
  }

  [Symbol.dispose](): void {
    for (const name of names) process.off(name, this.#hear);
    for (const output of this.#outputs) output.off("error", this.#lose);
  }

  #heard(signal: Interrupt): void {
    if (this.#left.has(signal)) return;
    const reason = new Interrupted(signal);
    if (this.insisted.aborted) process.exit(reason.exitCode);
    (this.asked.aborted ? this.#insisted : this.#asked).abort(reason);
  }

  /** Each further write fails as well: that insists on nothing. */
  #lost({ code, message }: NodeJS.ErrnoException): void {
    if (this.asked.aborted) return;
    this.#asked.abort(new Interrupted("SIGPIPE", code === "EPIPE" ? undefined : message));
  }
}
