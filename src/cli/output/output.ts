/** The output of a command: results on stdout, messages and progress on stderr, colours only on a terminal. */
import { styleText } from "node:util";
import yoctoSpinner from "yocto-spinner";
import { type Column, formatTable } from "./table.ts";

type Sink = { write(text: string | Uint8Array): unknown; isTTY?: boolean; columns?: number };

export class Output {
  readonly stdout: Sink;
  readonly stderr: Sink;
  readonly json: boolean;
  readonly #plain: boolean;
  #hasDocument = false;

  constructor(stdout: Sink, stderr: Sink, options: { json: boolean; plain: boolean }) {
    this.stdout = stdout;
    this.stderr = stderr;
    this.json = options.json;
    this.#plain = options.plain;
  }

  /** Prints a line of the result; with `--json` only the document is printed. */
  print(text: string): void {
    if (!this.json) this.stdout.write(`${text}\n`);
  }

  /** Prints the result: the document with `--json`, else the line. */
  printResult(document: unknown, text: string): void {
    if (this.json) this.printJson(document);
    else this.print(text);
  }

  printTable<T>(columns: Column<T>[], rows: T[]): void {
    for (const line of formatTable(columns, rows, this.stdout.columns)) this.print(line);
  }

  get hasDocument(): boolean {
    return this.#hasDocument;
  }

  /** With `--json`: prints the document, or one of a stream of documents. */
  printJson(value: unknown): void {
    this.#hasDocument = true;
    this.stdout.write(`${JSON.stringify(value)}\n`);
  }

  info(text: string): void {
    this.stderr.write(`${text}\n`);
  }

  error(text: string, hint?: string): void {
    this.#printLabelled(this.#paint("red", "error:"), text, hint);
  }

  warn(text: string, hint?: string): void {
    this.#printLabelled(this.#paint("yellow", "warning:"), text, hint);
  }

  #printLabelled(label: string, text: string, hint: string | undefined): void {
    this.info(`${label} ${text}`);
    if (hint !== undefined) this.info(`${this.#paint("cyan", "hint:")} ${hint}`);
  }

  #paint(colour: "red" | "yellow" | "cyan", text: string): string {
    if (this.#plain || this.stderr.isTTY !== true) return text;
    return styleText(colour, text, { validateStream: false });
  }
}

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
