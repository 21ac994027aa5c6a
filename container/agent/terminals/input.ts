/** Queues what was typed until the program takes it. The runtime's own writer would make the descriptor blocking. */
import { writeSync } from "node:fs";
import { limits } from "../../../src/protocol/limits.ts";
import { Ring } from "./ring.ts";

const pieceBytes = 64 * 1024;
/** The kernel does not signal when a terminal takes input again, so writes are retried, less and less often. */
const retryMs = { first: 1, last: 64 };

export class Input {
  readonly #master: number;
  #waiting = new Ring(limits.terminalInputBytesMax);
  /** How much of `#waiting` the terminal took. */
  #taken = 0;
  #timer: Timer | undefined;
  #pauseMs = retryMs.first;
  #closed = false;

  constructor(master: number) {
    this.#master = master;
  }

  /** False: nothing is accepted, because the program has not read what came before. */
  write(bytes: Uint8Array): boolean {
    if (this.#closed) return true;
    const waiting = this.#waiting.end - this.#taken;
    if (waiting + bytes.length > limits.terminalInputBytesMax) return false;
    const written = waiting > 0 ? 0 : this.#writeNow(bytes);
    if (written < bytes.length) {
      this.#waiting.push(bytes.subarray(written));
      this.#timer ??= setTimeout(() => this.#retry(), this.#pauseMs);
    }
    return true;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #retry(): void {
    this.#timer = undefined;
    const before = this.#taken;
    for (;;) {
      const next = this.#waiting.peek(this.#taken, pieceBytes);
      const written = this.#writeNow(next);
      this.#taken += written;
      if (written < next.length) break;
      if (this.#taken === this.#waiting.end) {
        this.#reset();
        return;
      }
    }
    const moved = this.#taken > before;
    this.#pauseMs = moved ? retryMs.first : Math.min(2 * this.#pauseMs, retryMs.last);
    this.#timer = setTimeout(() => this.#retry(), this.#pauseMs);
  }

  /** Everything is written: frees the memory too. */
  #reset(): void {
    this.#waiting = new Ring(limits.terminalInputBytesMax);
    this.#taken = 0;
    this.#pauseMs = retryMs.first;
  }

  /** Returns how many bytes the terminal took. */
  #writeNow(bytes: Uint8Array): number {
    let written = 0;
    try {
      while (written < bytes.length) {
        const length = Math.min(pieceBytes, bytes.length - written);
        written += writeSync(this.#master, bytes, written, length);
      }
    } catch (error) {
      // Nobody is left to read it, so the rest is dropped.
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") return bytes.length;
    }
    return written;
  }
}
