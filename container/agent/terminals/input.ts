/**
 * Owns what was typed and not yet taken by the program: in order, bounded, without ever waiting in a write.
 * Does not own who may type. (The runtime's own writer would make the descriptor a blocking one.)
 */
import { writeSync } from "node:fs";
import { limits } from "../../../src/protocol/limits.ts";
import { Ring } from "./ring.ts";

const pieceBytes = 64 * 1024;
/** Nothing tells when a terminal takes input again: it is tried soon, then less and less often. */
const tryAgainMs = { first: 1, last: 64 };

export class Input {
  readonly #master: number;
  #waiting = new Ring(limits.terminalInputBytesMax);
  #taken = 0;
  #timer: Timer | undefined;
  #pauseMs = tryAgainMs.first;
  #closed = false;

  constructor(master: number) {
    this.#master = master;
  }

  /** False: refused as a whole, because the program has not read what came before. */
  write(bytes: Uint8Array): boolean {
    if (this.#closed) return true;
    const waiting = this.#waiting.end - this.#taken;
    if (waiting + bytes.length > limits.terminalInputBytesMax) return false;
    const given = waiting > 0 ? 0 : this.#give(bytes);
    if (given < bytes.length) {
      this.#waiting.push(bytes.subarray(given));
      this.#timer ??= setTimeout(() => this.#tryAgain(), this.#pauseMs);
    }
    return true;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #tryAgain(): void {
    this.#timer = undefined;
    const before = this.#taken;
    for (;;) {
      const next = this.#waiting.peek(this.#taken, pieceBytes);
      const given = this.#give(next);
      this.#taken += given;
      if (given < next.length) break;
      if (this.#taken === this.#waiting.end) {
        this.#forget();
        return;
      }
    }
    const moved = this.#taken > before;
    this.#pauseMs = moved ? tryAgainMs.first : Math.min(2 * this.#pauseMs, tryAgainMs.last);
    this.#timer = setTimeout(() => this.#tryAgain(), this.#pauseMs);
  }

  /** All is taken: the memory is given back too. */
  #forget(): void {
    this.#waiting = new Ring(limits.terminalInputBytesMax);
    this.#taken = 0;
    this.#pauseMs = tryAgainMs.first;
  }

  /** How many bytes the terminal took. */
  #give(bytes: Uint8Array): number {
    let given = 0;
    try {
      while (given < bytes.length) {
        given += writeSync(this.#master, bytes, given, Math.min(pieceBytes, bytes.length - given));
      }
    } catch (error) {
      // Nobody is left to read it: the rest is dropped.
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") return bytes.length;
    }
    return given;
  }
}
