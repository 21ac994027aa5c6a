/**
 * Owns hearing the end of a command from the channel on which a session's shell tells it, among whatever else is
 * written there. Does not own the words of that telling (script.ts).
 */
import { deafPath } from "./script.ts";

export type End = { exitCode: number; cwd: string };

/** Longer than any telling; what is older was noise. */
const heardMax = 64 * 1024;

export class Ends {
  #text = "";
  #awaited: { word: string; told: (end: End | "deaf") => void } | undefined;

  /** "deaf": the shell got past the command, but did not do what it was told. */
  of(word: string): Promise<End | "deaf"> {
    this.#text = "";
    return new Promise((told) => {
      this.#awaited = { word, told };
    });
  }

  take(bytes: Uint8Array): void {
    if (this.#awaited === undefined) return;
    this.#text = (this.#text + Buffer.from(bytes).toString("latin1")).slice(-heardMax);
    const { word, told } = this.#awaited;
    const end = endIn(this.#text, word);
    if (end === undefined) return;
    this.#awaited = undefined;
    this.#text = "";
    told(end);
  }
}

function endIn(text: string, word: string): End | "deaf" | undefined {
  const head = `\0${word}\0`;
  const at = text.indexOf(head);
  if (at < 0) return text.includes(`${deafPath(word)}:`) ? "deaf" : undefined;
  const [status, cwd, rest] = text.slice(at + head.length).split("\0", 3);
  if (cwd === undefined || rest === undefined) return undefined;
  return { exitCode: Number(status), cwd: Buffer.from(cwd, "latin1").toString("utf8") };
}
