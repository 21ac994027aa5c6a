/** The output of a command: results on stdout, messages and progress on stderr, colours only on a terminal. */
import { styleText } from "node:util";
import type { Spinner } from "yocto-spinner";
import { toPlainJson, toPlainLine } from "./plain-text.ts";
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

  /** Without colours. */
  get isPlain(): boolean {
    return this.#plain;
  }

  /** Prints lines of the result; with `--json` only the document is printed. */
  print(...lines: string[]): void {
    if (!this.json) this.stdout.write(toText(lines));
  }

  /** Prints the result: the document with `--json`, else the lines. */
  printResult(document: unknown, ...lines: string[]): void {
    if (this.json) this.printJson(document);
    else this.print(...lines);
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
    this.stdout.write(`${toPlainJson(value)}\n`);
  }

  info(...lines: string[]): void {
    this.stderr.write(toText(lines));
  }

  error(text: string, hint?: string): void {
    this.#printLabelled(this.#paint("red", "error:"), text, hint);
  }

  warn(text: string, hint?: string): void {
    this.#printLabelled(this.#paint("yellow", "warning:"), text, hint);
  }

  #printLabelled(label: string, text: string, hint: string | undefined): void {
    const hinted = hint === undefined ? "" : `${this.#paint("cyan", "hint:")} ${toText([hint])}`;
    this.stderr.write(`${label} ${toText([text])}${hinted}`);
  }

  #paint(colour: "red" | "yellow" | "cyan", text: string): string {
    if (this.#plain || this.stderr.isTTY !== true) return text;
    return styleText(colour, text, { validateStream: false });
  }
}

function toText(lines: string[]): string {
  return lines.map((line) => `${toPlainLine(line)}\n`).join("");
}

/** A wait shorter than this shows nothing. */
const showAfterMs = 150;

export class Progress {
  readonly #show: boolean;
  #text = "";
  #spinner: Spinner | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(show: boolean) {
    this.#show = show;
  }

  /** Shows what the command waits for now, in place of the previous text. */
  show(text: string): void {
    if (!this.#show) return;
    this.#text = toPlainLine(text);
    if (this.#spinner !== undefined) this.#spinner.text = this.#text;
    this.#timer ??= setTimeout(() => void this.#begin(), showAfterMs);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#spinner?.stop();
    this.#spinner = undefined;
  }

  async #begin(): Promise<void> {
    const timer = this.#timer;
    const { default: createSpinner } = await import("yocto-spinner");
    // Ended meanwhile.
    if (this.#timer !== timer) return;
    const spinner = createSpinner({
      text: this.#text,
      stream: process.stderr,
      handleSignals: false,
    });
    this.#spinner = spinner.start();
  }
}
