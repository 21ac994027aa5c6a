/**
 * Owns what is kept of a command's output: the first bytes of both streams together, up to a bound.
 * Does not own reading: it is told the bytes as they come, and what is beyond the bound is dropped here.
 */

export class Output {
  readonly stdout = new Kept();
  readonly stderr = new Kept();
  truncated = false;
  #room: number;

  constructor(bytesMax: number) {
    this.#room = bytesMax;
  }

  take(stream: "stdout" | "stderr", bytes: Uint8Array): void {
    const fits = bytes.length <= this.#room ? bytes : bytes.subarray(0, this.#room);
    if (fits.length < bytes.length) this.truncated = true;
    this.#room -= fits.length;
    this[stream].push(fits);
  }
}

/** Copies into one growing buffer: many small chunks, each with a large buffer behind it, would have no bound. */
class Kept {
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

  /** As text, bytes that are no UTF-8 become U+FFFD. */
  text(encoding: "utf8" | "base64"): string {
    return this.#bytes.toString(encoding, 0, this.#length);
  }
}
