/** Emulates one terminal: applies its output and returns its screen. It does not answer queries in the output. */
import headless from "@xterm/headless";
import type { Screen } from "../../../../src/protocol/terminal.ts";
import { serializeScreen } from "./screen-snapshot.ts";
import { internalsOf, isWithinSequence } from "./xterm-internals.ts";

type ScreenText = Omit<Screen, "offset">;

const scrollbackLines = 200;
/** A larger snapshot is made again without scrollback, and then without colours. */
const snapshotBytesMax = 2 * 1024 * 1024;
const titleCharsMax = 256;
const lineCharsMax = 8192;
const incompleteBytesMax = 4096;
const escapeByte = 0x1b;
/** The parameter of "erase in display" for everything above the cursor. */
const eraseAbove = 1;

export class Emulator {
  readonly #terminal: headless.Terminal;
  readonly #incomplete = new IncompleteSequence();
  #title = "";

  constructor(cols: number, rows: number) {
    this.#terminal = new headless.Terminal({
      cols,
      rows,
      scrollback: scrollbackLines,
      allowProposedApi: true,
      logLevel: "off",
    });
    eraseAboveSafely(this.#terminal);
    this.#terminal.onTitleChange((title) => {
      // Nothing in the title may end the sequence that carries it.
      this.#title = title.replace(/[\p{Cc}\p{Cs}]/gu, "").slice(0, titleCharsMax);
    });
  }

  async write(bytes: Uint8Array): Promise<void> {
    await new Promise<void>((resolve) => this.#terminal.write(bytes, resolve));
    this.#incomplete.add(bytes, isWithinSequence(this.#terminal));
  }

  resize(cols: number, rows: number): void {
    this.#terminal.resize(cols, rows);
  }

  snapshot(): Uint8Array {
    return Buffer.concat([this.#serialize(), this.#incomplete.bytes]);
  }

  screenText(): ScreenText {
    const { cols, rows, buffer } = this.#terminal;
    const { active } = buffer;
    const lines = Array.from({ length: rows }, (_, y) =>
      (active.getLine(active.baseY + y)?.translateToString(true) ?? "")
        .slice(0, lineCharsMax)
        .trimEnd(),
    );
    return {
      text: lines.join("\n"),
      cols,
      rows,
      cursor: { x: Math.min(active.cursorX, cols - 1), y: active.cursorY },
      title: this.#title,
      alternate: active.type === "alternate",
    };
  }

  free(): void {
    this.#terminal.dispose();
  }

  /** For tests that compare two screens cell by cell. */
  get terminal(): headless.Terminal {
    return this.#terminal;
  }

  #serialize(detail = { scrollback: true, colours: true }): Buffer {
    const bytes = Buffer.from(serializeScreen(this.#terminal, this.#title, detail));
    if (bytes.length <= snapshotBytesMax || !detail.colours) return bytes;
    return this.#serialize({ scrollback: false, colours: detail.scrollback });
  }
}

/**
 * Works around a bug of the emulator: erasing everything above the end of the last line throws inside it, and then its
 * write never completes.
 */
function eraseAboveSafely(terminal: headless.Terminal): void {
  for (const id of [{ final: "J" }, { prefix: "?", final: "J" }]) {
    terminal.parser.registerCsiHandler(id, (params) => {
      const { buffers, _inputHandler: handler } = internalsOf(terminal);
      const { active } = buffers;
      const isLast = active.y + 1 >= terminal.buffer.active.length;
      if (params[0] !== eraseAbove || !isLast || active.x + 1 < terminal.cols) return false;
      const { x } = active;
      const call = { params: [eraseAbove] };
      const isSelective = "prefix" in id;
      // One column earlier it erases the lines above without throwing; the rest of this line follows.
      active.x = terminal.cols - 2;
      handler.eraseInDisplay(call, isSelective);
      active.x = terminal.cols - 1;
      handler.eraseInLine(call, isSelective);
      active.x = x;
      return true;
    });
  }
}

/**
 * Remembers the bytes at the end of an output that form no complete character or sequence yet. Bounded: of a sequence
 * that is too long it stores the beginning, which still swallows the rest.
 */
class IncompleteSequence {
  #bytes: Uint8Array = new Uint8Array();

  get bytes(): Uint8Array {
    return this.#bytes;
  }

  /** `isWithinSequence` describes the state after these bytes. */
  add(bytes: Uint8Array, isWithinSequence: boolean): void {
    if (!isWithinSequence) {
      const all = bytes.length > 3 ? bytes : Buffer.concat([this.#bytes.slice(-3), bytes]);
      this.#bytes = Uint8Array.from(all.subarray(characterStart(all)));
      return;
    }
    const start = sequenceStart(bytes);
    const more = start === undefined ? Buffer.concat([this.#bytes, bytes]) : bytes;
    this.#bytes = Uint8Array.from(more.subarray(start ?? 0, (start ?? 0) + incompleteBytesMax));
  }
}

/** The last ESC, or the last of the controls that begin a sequence as two bytes of UTF-8 (0x90 and such). */
function sequenceStart(bytes: Uint8Array): number | undefined {
  const simple = bytes.lastIndexOf(escapeByte);
  for (let index = bytes.length - 1; index > simple; index -= 1) {
    const byte = bytes[index] ?? 0;
    const begins =
      byte === 0x90 || byte === 0x98 || byte === 0x9b || (byte >= 0x9d && byte <= 0x9f);
    if (begins && bytes[index - 1] === 0xc2) return index - 1;
  }
  return simple === -1 ? undefined : simple;
}

/** Where an incomplete UTF-8 character begins; the length if all are complete. */
function characterStart(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 && byte < 0xf8 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return byte < 0xf8 && length > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}
