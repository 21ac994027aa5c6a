/** Retains the first bytes of a command's output, up to its own bound and a budget that all commands share. */

import { limits } from "../../../src/protocol/limits.ts";
import { boundByMemory } from "../memory.ts";

/** What all commands together may retain, beyond the first bytes that each has for itself. */
export class OutputBudget {
  #left: number;

  constructor(bytesMax: number) {
    this.#left = bytesMax;
  }

  get left(): number {
    return this.#left;
  }

  /** Returns how many of the bytes were left. */
  take(bytes: number): number {
    const granted = Math.min(bytes, this.#left);
    this.#left -= granted;
    return granted;
  }

  release(bytes: number): void {
    this.#left += bytes;
  }
}

/** One for the whole agent. */
const sharedBudget = new OutputBudget(boundByMemory(limits.execOutputAllBytesMax));

export class Output {
  truncated = false;
  stdout = new RetainedBytes();
  stderr = new RetainedBytes();
  readonly #shared: OutputBudget;
  #bytesLeft: number;
  #own: number = limits.execOutputOwnBytes;
  #fromShared = 0;

  constructor(bytesMax: number, shared: OutputBudget = sharedBudget) {
    this.#bytesLeft = bytesMax;
    this.#shared = shared;
  }

  take(stream: "stdout" | "stderr", bytes: Uint8Array): void {
    const wanted = Math.min(bytes.length, this.#bytesLeft);
    const own = Math.min(wanted, this.#own);
    const shared = this.#shared.take(wanted - own);
    this.#own -= own;
    this.#fromShared += shared;
    const length = own + shared;
    this[stream].push(bytes.subarray(0, length));
    this.#bytesLeft -= length;
    if (length === bytes.length) return;
    this.truncated = true;
    // What is retained has no gap, even if others release budget meanwhile.
    this.#bytesLeft = 0;
  }

  /** Call when the result has been written: others may use the budget. A second call does nothing. */
  release(): void {
    this.#shared.release(this.#fromShared);
    this.#fromShared = 0;
    this.#bytesLeft = 0;
    this.stdout = new RetainedBytes();
    this.stderr = new RetainedBytes();
  }
}

/** Copies into one growing buffer, because each small chunk may keep a large buffer alive. */
class RetainedBytes {
  #bytes = Buffer.alloc(0);
  #length = 0;

  push(bytes: Uint8Array): void {
    const length = this.#length + bytes.length;
    if (length > this.#bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(length, this.#bytes.length * 2));
      this.#bytes.copy(grown, 0, 0, this.#length);
      this.#bytes = grown;
    }
    this.#bytes.set(bytes, this.#length);
    this.#length = length;
  }

  /** In utf8, bytes that are not UTF-8 become U+FFFD. */
  text(encoding: "utf8" | "base64"): string {
    return this.#bytes.toString(encoding, 0, this.#length);
  }
}
