/** Stores the newest bytes of a terminal's output in memory, addressed by their offset from the first byte ever. */
const firstBytes = 16 * 1024;

export class Ring {
  readonly #bytesMax: number;
  /** Byte `n` is at `n` modulo the length. Grows with the output, so that a quiet terminal costs little. */
  #bytes = Buffer.alloc(0);
  #end = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The oldest offset in the ring. */
  get start(): number {
    return Math.max(0, this.#end - this.#bytes.length);
  }

  /** The offset of the next byte. */
  get end(): number {
    return this.#end;
  }

  push(bytes: Uint8Array): void {
    this.#growFor(this.#end - this.start + bytes.length);
    const capacity = this.#bytes.length;
    const newest = bytes.subarray(Math.max(0, bytes.length - capacity));
    const index = (this.#end + bytes.length - newest.length) % capacity;
    const first = newest.subarray(0, capacity - index);
    this.#bytes.set(first, index);
    this.#bytes.set(newest.subarray(first.length), 0);
    this.#end += bytes.length;
  }

  /** Returns some bytes from there on, at most `bytesMax`. They are no copy: valid until the next push. */
  peek(from: number, bytesMax: number): Uint8Array {
    const index = from % this.#bytes.length;
    const length = Math.min(bytesMax, this.#end - from, this.#bytes.length - index);
    return this.#bytes.subarray(index, index + length);
  }

  /** Returns a copy. Both offsets must be in the ring. */
  read(from: number, to: number): Uint8Array {
    const copy = new Uint8Array(to - from);
    for (let offset = from; offset < to; ) {
      const piece = this.peek(offset, to - offset);
      copy.set(piece, offset - from);
      offset += piece.length;
    }
    return copy;
  }

  #growFor(needed: number): void {
    if (this.#bytes.length === this.#bytesMax || needed <= this.#bytes.length) return;
    let length = Math.max(firstBytes, this.#bytes.length);
    while (length < needed && length < this.#bytesMax) length *= 2;
    const grown = Buffer.allocUnsafeSlow(Math.min(length, this.#bytesMax));
    for (let offset = this.start; offset < this.#end; ) {
      // One copy must not wrap around in the old or in the new buffer.
      const index = offset % grown.length;
      const piece = this.peek(offset, grown.length - index);
      grown.set(piece, index);
      offset += piece.length;
    }
    this.#bytes = grown;
  }
}
