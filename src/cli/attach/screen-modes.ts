/**
 * Owns which modes of the person's own terminal a remote program has switched on, and what switches them off again.
 * Does not own the terminal. Reads output as it passes; keeps no more of it than an unfinished sequence.
 */

/** The end of a piece may hold the beginning of a sequence. */
const restBytesMax = 64;
/** Switched on when a terminal begins: the cursor, and lines that wrap. */
const usuallyOn = new Set(["25", "7"]);
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what terminals are told by.
const sequences = /\x1b(?:\[\?([\d;]{1,40})([hl])|\[(>[\d;]*)u|\[<\d*u|([=>c]))/g;

export class ScreenModes {
  readonly #changed = new Set<string>();
  #rest = "";
  #keypad = false;
  #keyboards = 0;

  see(bytes: Uint8Array): void {
    const text =
      this.#rest + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
    let end = 0;
    for (const match of text.matchAll(sequences)) {
      end = match.index + match[0].length;
      this.#note(match);
    }
    const open = text.lastIndexOf("\x1b");
    this.#rest = open >= end ? text.slice(open, open + restBytesMax) : "";
  }

  /** As the person had it: no mouse, no other screen, a cursor, no colours, no margins. */
  restore(): string {
    const off = [...this.#changed].map((mode) => `\x1b[?${mode}${usuallyOn.has(mode) ? "h" : "l"}`);
    const keypad = this.#keypad ? "\x1b>" : "";
    const keyboard = "\x1b[<u".repeat(this.#keyboards);
    this.#forget();
    // Without margins the cursor stands at the top: it is put back, on the screen that stays.
    return `\x1b[m${keyboard}${off.join("")}${keypad}\x1b7\x1b[r\x1b8`;
  }

  #note([, modes, to, keyboard, single]: RegExpMatchArray): void {
    if (single === "c") this.#forget();
    else if (single !== undefined) this.#keypad = single === "=";
    else if (keyboard !== undefined) this.#keyboards += 1;
    else if (modes === undefined) this.#keyboards = Math.max(0, this.#keyboards - 1);
    for (const mode of modes?.split(";") ?? []) {
      if ((to === "h") === usuallyOn.has(mode)) this.#changed.delete(mode);
      else this.#changed.add(mode);
    }
  }

  /** Its terminal was reset. */
  #forget(): void {
    this.#changed.clear();
    this.#keypad = false;
    this.#keyboards = 0;
  }
}
