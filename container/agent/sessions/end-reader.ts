/**
 * Finds the end of a command in what a session's shell writes to its standard error, between other output. See
 * script.ts for the lines that report it.
 */
import { unresponsivePath } from "./script.ts";

export type CommandEnd = { exitCode: number; cwd: string };

/** Longer than any report; older text was other output. */
const textCharsMax = 64 * 1024;

export class EndReader {
  #text = "";
  #awaited: { word: string; resolve: (end: CommandEnd | "unresponsive") => void } | undefined;

  /** Resolves with "unresponsive" if the shell got past the command without running the line that reports its end. */
  waitFor(word: string): Promise<CommandEnd | "unresponsive"> {
    this.#text = "";
    return new Promise((resolve) => {
      this.#awaited = { word, resolve };
    });
  }

  take(bytes: Uint8Array): void {
    if (this.#awaited === undefined) return;
    this.#text = (this.#text + Buffer.from(bytes).toString("latin1")).slice(-textCharsMax);
    const { word, resolve } = this.#awaited;
    const end = parseEnd(this.#text, word);
    if (end === undefined) return;
    this.#awaited = undefined;
    this.#text = "";
    resolve(end);
  }
}

function parseEnd(text: string, word: string): CommandEnd | "unresponsive" | undefined {
  const head = `\0${word}\0`;
  const start = text.indexOf(head);
  if (start < 0) return text.includes(`${unresponsivePath(word)}:`) ? "unresponsive" : undefined;
  const [status, cwd, rest] = text.slice(start + head.length).split("\0", 3);
  if (cwd === undefined || rest === undefined) return undefined;
  return { exitCode: Number(status), cwd: Buffer.from(cwd, "latin1").toString("utf8") };
}
