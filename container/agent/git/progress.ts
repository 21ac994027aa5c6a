/** Reads the messages of a running git: progress as phase and percent, and the last lines of everything else. */
import type { CloneProgress } from "../../../src/protocol/git.ts";

const lineBytesMax = 4096;
const linesMax = 6;
const progressLine = /^(?:remote: )?([A-Z][A-Za-z ]+):\s+(?:(\d+)% \(\d+\/\d+\)|\d+)/;

export class ProgressReader {
  readonly #onProgress: (progress: CloneProgress) => void;
  readonly #text = new TextDecoder();
  #rest = "";
  #lastLines: string[] = [];

  constructor(onProgress: (progress: CloneProgress) => void) {
    this.#onProgress = onProgress;
  }

  take(bytes: Uint8Array): void {
    const lines = (this.#rest + this.#text.decode(bytes, { stream: true })).split(/[\r\n]/);
    this.#rest = (lines.pop() ?? "").slice(-lineBytesMax);
    for (const line of lines) this.#line(line.trimEnd());
  }

  /** The last messages that are not progress. */
  get lastLines(): string {
    return [...this.#lastLines, this.#rest.trim()].filter((line) => line !== "").join("\n");
  }

  #line(line: string): void {
    const [, phase, percent] = progressLine.exec(line) ?? [];
    if (phase !== undefined) {
      this.#onProgress({ phase, percent: percent === undefined ? null : Number(percent) });
    } else if (line !== "" && !/^(Cloning into |remote: *$)/.test(line)) {
      this.#lastLines = [...this.#lastLines, line.slice(0, lineBytesMax)].slice(-linesMax);
    }
  }
}
