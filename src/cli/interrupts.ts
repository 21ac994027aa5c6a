/**
 * Handles Ctrl-C, TERM and a closed terminal: the first one requests the end of the command, the second one forces it,
 * the third one ends this process. A failed write of the output may count as a request too.
 */
import { constants } from "node:os";

const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** SIGPIPE stands for output that cannot be written. */
type Interrupt = (typeof names)[number] | "SIGPIPE";

/** The reason with which `requested` and `forced` abort. */
export class Interrupted extends Error {
  readonly signal: Interrupt;
  /** Why the output could not be written; undefined if its reader has closed it. */
  readonly unwritten: string | undefined;

  constructor(signal: Interrupt, unwritten?: string) {
    super(`interrupted by ${signal}`);
    this.name = "Interrupted";
    this.signal = signal;
    this.unwritten = unwritten;
  }

  /** The exit code that a shell reports for the signal. */
  get exitCode(): number {
    return this.unwritten === undefined ? signalExitCode(this.signal) : 125;
  }
}

export function signalExitCode(signal: string): number {
  return 128 + (constants.signals[signal as NodeJS.Signals] ?? 0);
}

type Outputs = { json: boolean; stdout: NodeJS.WriteStream; stderr: NodeJS.WriteStream };

export class Interrupts {
  readonly #requested = new AbortController();
  readonly #forced = new AbortController();
  readonly #onSignal = (signal: NodeJS.Signals) => this.#handleSignal(signal as Interrupt);
  readonly #onOutputError = (error: NodeJS.ErrnoException) => this.#handleOutputError(error);
  readonly #outputs: NodeJS.WriteStream[] = [];
  readonly #ignored = new Set<Interrupt>();

  /** Handles signals until the result is disposed. */
  listen(): Disposable {
    for (const name of names) process.on(name, this.#onSignal);
    return { [Symbol.dispose]: () => this.#stopListening() };
  }

  /** From now on a failed write of the output requests the end. With `--json`, messages on stderr may be lost. */
  watchOutputs({ json, stdout, stderr }: Outputs): void {
    this.#outputs.push(...(json ? [stdout] : [stdout, stderr]));
    for (const output of this.#outputs) output.on("error", this.#onOutputError);
  }

  /** Aborts at the first interrupt. */
  get requested(): AbortSignal {
    return this.#requested.signal;
  }

  /** Aborts at the second interrupt. */
  get forced(): AbortSignal {
    return this.#forced.signal;
  }

  get first(): Interrupted | undefined {
    return this.requested.aborted ? (this.requested.reason as Interrupted) : undefined;
  }

  /** Ignores this signal from now on, because a child process receives it too. */
  ignore(signal: Interrupt): void {
    this.#ignored.add(signal);
  }

  /** The interrupt that caused this failure, or else the failure itself. */
  explain(thrown: unknown): unknown {
    const isAbort = thrown instanceof Error && thrown.name === "AbortError";
    return isAbort ? (this.first ?? thrown) : thrown;
  }

  #stopListening(): void {
    for (const name of names) process.off(name, this.#onSignal);
    for (const output of this.#outputs) output.off("error", this.#onOutputError);
  }

  #handleSignal(signal: Interrupt): void {
    if (this.#ignored.has(signal)) return;
    const reason = new Interrupted(signal);
    if (this.forced.aborted) process.exit(reason.exitCode);
    (this.requested.aborted ? this.#forced : this.#requested).abort(reason);
  }

  /** Later failures of the output do not force the end. */
  #handleOutputError({ code, message }: NodeJS.ErrnoException): void {
    if (this.requested.aborted) return;
    this.#requested.abort(new Interrupted("SIGPIPE", code === "EPIPE" ? undefined : message));
  }
}
