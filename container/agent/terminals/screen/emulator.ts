/**
 * Emulates one terminal: applies its output and returns its screen. It does not answer queries in the output.
 */
import headless from "@xterm/headless";
import type { Screen } from "../../../../src/protocol/terminal.ts";
import { eraseAboveSafely } from "./erase-above.ts";
import { IncompleteSequence } from "./incomplete-sequence.ts";
import { serializeScreen } from "./screen-snapshot.ts";
import { isWithinSequence } from "./xterm-internals.ts";

type ScreenText = Omit<Screen, "offset">;

const scrollbackLines = 200;
/** A larger snapshot is made again without scrollback, and then without colours. */
const snapshotBytesMax = 2 * 1024 * 1024;
const titleCharsMax = 256;
const lineCharsMax = 8192;

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
    const bytes = this.#serialized();
    return Buffer.concat([bytes, this.#incomplete.bytes]);
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

  #serialized(): Buffer {
    for (const detail of [
      { scrollback: true, colours: true },
      { scrollback: false, colours: true },
    ]) {
      const bytes = Buffer.from(serializeScreen(this.#terminal, this.#title, detail));
      if (bytes.length <= snapshotBytesMax) return bytes;
    }
    const least = { scrollback: false, colours: false };
    return Buffer.from(serializeScreen(this.#terminal, this.#title, least));
  }
}
