/**
 * Owns reading what git says on its way: progress as phase and percent, and the last lines of all else.
 * Does not own who is told.
 */
import type { CloneProgress } from "../../../src/protocol/git.ts";

const lineBytesMax = 4096;
const linesKept = 6;
const progressLine = /^(?:remote: )?([A-Z][A-Za-z ]+):\s+(?:(\d+)% \(\d+\/\d+\)|\d+)/;

export class Progress {
  readonly #tell: (progress: CloneProgress) => void;
  readonly #text = new TextDecoder();
  #rest = "";
  #last: string[] = [];

  constructor(tell: (progress: CloneProgress) => void) {
    this.#tell = tell;
  }

  take(bytes: Uint8Array): void {
    const lines = (this.#rest + this.#text.decode(bytes, { stream: true })).split(/[\r\n]/);
    this.#rest = (lines.pop() ?? "").slice(-lineBytesMax);
    for (const line of lines) this.#line(line.trimEnd());
  }

  /** What git said in the end, beside progress. */
  get lastWords(): string {
    return [...this.#last, this.#rest.trim()].filter((line) => line !== "").join("\n");
  }

  #line(line: string): void {
    const [, phase, percent] = progressLine.exec(line) ?? [];
    if (phase !== undefined) {
      this.#tell({ phase, percent: percent === undefined ? null : Number(percent) });
    } else if (line !== "" && !/^(Cloning into |remote: *$)/.test(line)) {
      this.#last = [...this.#last, line.slice(0, lineBytesMax)].slice(-linesKept);
    }
  }
}
