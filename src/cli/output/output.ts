/**
 * Owns the two channels of a command: stdout is data, stderr is talk.
 * Does not own progress (progress.ts) nor tables (table.ts).
 *
 * Colours go to a terminal only, and not where NO_COLOR asks for none.
 */
import { styleText } from "node:util";

export type Sink = { write(text: string | Uint8Array): unknown; isTTY?: boolean; columns?: number };
export type Colour = "red" | "green" | "yellow" | "cyan" | "dim" | "bold";

export class Output {
  readonly stdout: Sink;
  readonly stderr: Sink;
  readonly json: boolean;
  readonly #plain: boolean;
  #isTold = false;

  constructor(stdout: Sink, stderr: Sink, options: { json: boolean; plain: boolean }) {
    this.stdout = stdout;
    this.stderr = stderr;
    this.json = options.json;
    this.#plain = options.plain;
  }

  /** A line of the result; with `--json` there is none but the document. */
  line(text: string): void {
    if (!this.json) this.stdout.write(`${text}\n`);
  }

  /** A document was printed. */
  get isTold(): boolean {
    return this.#isTold;
  }

  /** With `--json`: the one document, or one of a stream's. */
  document(value: unknown): void {
    this.#isTold = true;
    this.stdout.write(`${JSON.stringify(value)}\n`);
  }

  /** A line of talk. */
  say(text: string): void {
    this.stderr.write(`${text}\n`);
  }

  warn(text: string, hint?: string): void {
    this.say(`${this.paint("yellow", "warning:")} ${text}`);
    if (hint !== undefined) this.say(`${this.paint("cyan", "hint:")} ${hint}`);
  }

  paint(colour: Colour, text: string, on: Sink = this.stderr): string {
    if (this.#plain || on.isTTY !== true) return text;
    return styleText(colour, text, { validateStream: false });
  }
}
