/** Tracks which modes a remote program has switched on in the user's terminal, and switches them off again. */
/** A chunk may end within a sequence. */
const restBytesMax = 64;
/** On by default: the cursor and line wrapping. */
const onByDefault = new Set(["25", "7"]);
const otherScreen = ["47", "1047", "1049"];
/** The kinds of modifier reports that xterm knows. */
const kindOfKeys = /^[0-7]$/;
const sequences =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with a control character.
  /\x1b(?:\[\?([\d;]{1,40})([hl])|\[([<=>])([\d;]{0,40})u|\[>([\d;]{0,40})([mn])|([=>c]))/g;

/** kitty's keyboard protocol, per screen: the entries pushed, and the flags below them. */
type Keyboard = { pushed: number; flags: number };

export class ScreenModes {
  readonly #changed = new Set<string>();
  /** xterm: which keys report their modifiers, and how. */
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

  /** The sequences that restore the terminal: no mouse, main screen, cursor, no colours, no margins, keys as before. */
  restore(): string {
    const off = [...this.#changed].map(
      (mode) => `\x1b[?${mode}${onByDefault.has(mode) ? "h" : "l"}`,
    );
    const other = this.#isOther() ? cleared(this.#keyboard.other) : "";
    const usual = cleared(this.#keyboard.usual);
    const modifiers = [...this.#modifiers].map((which) => `\x1b[>${which};m`).join("");
    const keypad = this.#keypad ? "\x1b>" : "";
    this.#forget();
    // Resetting the margins moves the cursor to the top: save and restore it.
    return `\x1b[m${other}${off.join("")}${usual}${modifiers}${keypad}\x1b7\x1b[r\x1b8`;
  }

  #note([, modes, to, mark, flags = "", keys, how, single]: RegExpMatchArray): void {
    if (single === "c") this.#forget();
    else if (single !== undefined) this.#keypad = single === "=";
    else if (mark !== undefined) this.#noteKeyboard(mark, flags);
    else if (keys !== undefined) this.#noteModifiers(keys, how === "n");
    for (const mode of modes?.split(";") ?? []) {
      if ((to === "h") === onByDefault.has(mode)) this.#changed.delete(mode);
      else this.#changed.add(mode);
    }
  }

  #noteKeyboard(mark: string, numbers: string): void {
    const keyboard = this.#keyboard[this.#isOther() ? "other" : "usual"];
    const [first = 0, how = 1] = numbers.split(";").map(Number);
    if (mark === ">") keyboard.pushed += 1;
    else if (mark === "<") {
      const popped = first || 1;
      // Popping more than was pushed clears the flags below.
      if (popped > keyboard.pushed) keyboard.flags = 0;
      keyboard.pushed = Math.max(0, keyboard.pushed - popped);
    } else if (keyboard.pushed === 0) {
      const { flags } = keyboard;
      keyboard.flags = how === 2 ? flags | first : how === 3 ? flags & ~first : first;
    }
  }

  /** Without a value the default applies; without a key, to all of them. */
  #noteModifiers(numbers: string, isOff: boolean): void {
    const [which = "", value = ""] = numbers.split(";");
    if (which === "" && !isOff) this.#modifiers.clear();
    else if (value === "" && !isOff) this.#modifiers.delete(which);
    else if (kindOfKeys.test(which)) this.#modifiers.add(which);
  }

  #isOther(): boolean {
    return otherScreen.some((mode) => this.#changed.has(mode));
  }

  /** After a reset of the terminal nothing is switched on. */
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
