/**
 * Owns one terminal's screen as its output has drawn it so far.
 * Does not own where the output comes from, nor whom the picture is for. It answers no question of the output's.
 */
import headless from "@xterm/headless";
import type { Screen } from "../../../../src/protocol/terminal.ts";
import { eraseAboveSafely } from "./erase-above.ts";
import { Unfinished } from "./incomplete-sequence.ts";
import { drawPicture } from "./screen-snapshot.ts";
import { isWithinSequence } from "./xterm-internals.ts";

export type Look = Omit<Screen, "offset">;

export const scrollbackLines = 200;
/** One that is larger goes without the lines above, and then without colours. */
export const pictureBytesMax = 2 * 1024 * 1024;
const titleCharsMax = 256;
const lineCharsMax = 8192;

export class Emulator {
  readonly #terminal: headless.Terminal;
  readonly #unfinished = new Unfinished();
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
      // Nothing in it may end the sequence that tells it.
      this.#title = title.replace(/[\p{Cc}\p{Cs}]/gu, "").slice(0, titleCharsMax);
    });
  }

  async write(bytes: Uint8Array): Promise<void> {
    await new Promise<void>((resolve) => this.#terminal.write(bytes, resolve));
    this.#unfinished.written(bytes, isWithinSequence(this.#terminal));
  }

  resize(cols: number, rows: number): void {
    this.#terminal.resize(cols, rows);
  }

  picture(): Uint8Array {
    const bytes = this.#drawn();
    return Buffer.concat([bytes, this.#unfinished.bytes]);
  }

  look(): Look {
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

  /** For those who compare two screens to the last cell. */
  get terminal(): headless.Terminal {
    return this.#terminal;
  }

  #drawn(): Buffer {
    for (const detail of [
      { scrollback: true, colours: true },
      { scrollback: false, colours: true },
    ]) {
      const bytes = Buffer.from(drawPicture(this.#terminal, this.#title, detail));
      if (bytes.length <= pictureBytesMax) return bytes;
    }
    const least = { scrollback: false, colours: false };
    return Buffer.from(drawPicture(this.#terminal, this.#title, least));
  }
}
