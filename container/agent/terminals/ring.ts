/**
 * Owns the newest bytes of a terminal's output, each at its offset from the first byte ever.
 * Does not own who reads where: a reader is a number.
 */

const firstBytes = 16 * 1024;

export class Ring {
  readonly #bytesMax: number;
  /** Byte `n` stands at `n` modulo its length. Grows with the output, so that a quiet terminal costs little. */
  #bytes = Buffer.alloc(0);
  #end = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The oldest offset that is still here. */
  get start(): number {
    return Math.max(0, this.#end - this.#bytes.length);
  }

  /** The offset of the next byte. */
  get end(): number {
    return this.#end;
  }

  push(bytes: Uint8Array): void {
    this.#growFor(this.#end - this.start + bytes.length);
    const room = this.#bytes.length;
    const kept = bytes.subarray(Math.max(0, bytes.length - room));
    const at = (this.#end + bytes.length - kept.length) % room;
    const first = kept.subarray(0, room - at);
    this.#bytes.set(first, at);
    this.#bytes.set(kept.subarray(first.length), 0);
    this.#end += bytes.length;
  }

  /** Some of the bytes from there on, at most `bytesMax`, without a copy: good until the next push. */
  peek(from: number, bytesMax: number): Uint8Array {
    const at = from % this.#bytes.length;
    const length = Math.min(bytesMax, this.#end - from, this.#bytes.length - at);
    return this.#bytes.subarray(at, at + length);
  }

  /** A copy. Both offsets must be within what is here. */
  read(from: number, to: number): Uint8Array {
    const copy = new Uint8Array(to - from);
    for (let at = from; at < to; ) {
      const piece = this.peek(at, to - at);
      copy.set(piece, at - from);
      at += piece.length;
    }
    return copy;
  }

  #growFor(needed: number): void {
    if (this.#bytes.length === this.#bytesMax || needed <= this.#bytes.length) return;
    let length = Math.max(firstBytes, this.#bytes.length);
    while (length < needed && length < this.#bytesMax) length *= 2;
    const grown = Buffer.allocUnsafeSlow(Math.min(length, this.#bytesMax));
    for (let at = this.start; at < this.#end; ) {
      // Neither the old nor the new place may be crossed by one copy.
      const piece = this.peek(at, grown.length - (at % grown.length));
      grown.set(piece, at % grown.length);
      at += piece.length;
    }
    this.#bytes = grown;
  }
}
