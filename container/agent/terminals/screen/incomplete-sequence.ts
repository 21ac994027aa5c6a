/**
 * Remembers the bytes at the end of an output that form no complete character or sequence yet. Bounded: of a sequence
 * that is too long it stores the beginning, which still swallows the rest.
 */
const bytesMax = 4096;
const escapeByte = 0x1b;

export class IncompleteSequence {
  #bytes: Uint8Array = new Uint8Array();

  get bytes(): Uint8Array {
    return this.#bytes;
  }

  /** `isWithinSequence` describes the state after these bytes. */
  add(bytes: Uint8Array, isWithinSequence: boolean): void {
    if (!isWithinSequence) {
      const all = bytes.length > 3 ? bytes : concat(this.#bytes.slice(-3), bytes);
      this.#bytes = all.slice(characterStart(all));
      return;
    }
    const start = sequenceStart(bytes);
    const more = start === undefined ? concat(this.#bytes, bytes) : bytes;
    this.#bytes = more.slice(start ?? 0, (start ?? 0) + bytesMax);
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

function concat(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
