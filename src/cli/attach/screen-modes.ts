/**
 * Owns which modes of the person's own terminal a remote program has switched on, and what switches them off again.
 * Does not own the terminal. Reads output as it passes; keeps no more of it than an unfinished sequence.
 */

/** The end of a piece may hold the beginning of a sequence. */
const restBytesMax = 64;
/** Switched on when a terminal begins: the cursor, and lines that wrap. */
const usuallyOn = new Set(["25", "7"]);
const otherScreen = ["47", "1047", "1049"];
/** Of keys with modifiers xterm knows these kinds. */
const kindOfKeys = /^[0-7]$/;
const sequences =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what terminals are told by.
  /\x1b(?:\[\?([\d;]{1,40})([hl])|\[([<=>])([\d;]{0,40})u|\[>([\d;]{0,40})([mn])|([=>c]))/g;

/** Of kitty's protocol, for each screen its own: entries that were pushed, and the flags below them. */
type Keyboard = { pushed: number; flags: number };

export class ScreenModes {
  readonly #changed = new Set<string>();
  /** Of xterm: which keys are told with their modifiers, and how. */
  readonly #modifiers = new Set<string>();
  #rest = "";
  #keypad = false;
  #keyboard: Record<"usual" | "other", Keyboard> = keyboards();

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

  /** As the person had it: no mouse, no other screen, a cursor, no colours, no margins, keys as they were. */
  restore(): string {
    const off = [...this.#changed].map((mode) => `\x1b[?${mode}${usuallyOn.has(mode) ? "h" : "l"}`);
    const other = this.#isOther() ? cleared(this.#keyboard.other) : "";
    const usual = cleared(this.#keyboard.usual);
    const modifiers = [...this.#modifiers].map((which) => `\x1b[>${which};m`).join("");
    const keypad = this.#keypad ? "\x1b>" : "";
    this.#forget();
    // Without margins the cursor stands at the top: it is put back, on the screen that stays.
    return `\x1b[m${other}${off.join("")}${usual}${modifiers}${keypad}\x1b7\x1b[r\x1b8`;
  }

  #note([, modes, to, mark, flags = "", keys, how, single]: RegExpMatchArray): void {
    if (single === "c") this.#forget();
    else if (single !== undefined) this.#keypad = single === "=";
    else if (mark !== undefined) this.#noteKeyboard(mark, flags);
    else if (keys !== undefined) this.#noteModifiers(keys, how === "n");
    for (const mode of modes?.split(";") ?? []) {
      if ((to === "h") === usuallyOn.has(mode)) this.#changed.delete(mode);
      else this.#changed.add(mode);
    }
  }

  #noteKeyboard(mark: string, numbers: string): void {
    const one = this.#keyboard[this.#isOther() ? "other" : "usual"];
    const [first = 0, how = 1] = numbers.split(";").map(Number);
    if (mark === ">") one.pushed += 1;
    else if (mark === "<") {
      const popped = first || 1;
      // Who takes off more than there is clears what lies below.
      if (popped > one.pushed) one.flags = 0;
      one.pushed = Math.max(0, one.pushed - popped);
    } else if (one.pushed === 0) {
      const { flags } = one;
      one.flags = how === 2 ? flags | first : how === 3 ? flags & ~first : first;
    }
  }

  /** Without a value the terminal takes what it began with; without a key for all of them. */
  #noteModifiers(numbers: string, isOff: boolean): void {
    const [which = "", value = ""] = numbers.split(";");
    if (which === "" && !isOff) this.#modifiers.clear();
    else if (value === "" && !isOff) this.#modifiers.delete(which);
    else if (kindOfKeys.test(which)) this.#modifiers.add(which);
  }

  #isOther(): boolean {
    return otherScreen.some((mode) => this.#changed.has(mode));
  }

  /** Its terminal was reset. */
  #forget(): void {
    this.#changed.clear();
    this.#modifiers.clear();
    this.#keypad = false;
    this.#keyboard = keyboards();
  }
}

function keyboards(): Record<"usual" | "other", Keyboard> {
  return { usual: { pushed: 0, flags: 0 }, other: { pushed: 0, flags: 0 } };
}

function cleared({ pushed, flags }: Keyboard): string {
  return `${pushed === 0 ? "" : `\x1b[<${pushed}u`}${flags === 0 ? "" : "\x1b[=0u"}`;
}
