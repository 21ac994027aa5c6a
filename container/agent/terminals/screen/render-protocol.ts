/**
 * Owns what the agent and the process that draws say to each other: orders one way, one answer to each the other way.
 * Does not own either of the two (drawer.ts, drawing-process.ts). Both are this same program.
 */
const orderHead = 16;
const answerHead = 8;

/** Each names a terminal by a number. */
export const order = { begin: 1, write: 2, resize: 3, picture: 4, look: 5, free: 6 } as const;
export type OrderKind = (typeof order)[keyof typeof order];

export type Order = {
  kind: OrderKind;
  terminal: number;
  cols: number;
  rows: number;
  bytes: Uint8Array;
};

/** A drawer that does not know the terminal says so: it has lost it. */
export type Answer = { known: boolean; bytes: Uint8Array };

export function orderBytes({ kind, terminal, cols, rows, bytes }: Order): Uint8Array {
  const message = new Uint8Array(orderHead + bytes.length);
  const head = new DataView(message.buffer);
  head.setUint32(0, kind);
  head.setUint32(4, terminal);
  head.setUint16(8, cols);
  head.setUint16(10, rows);
  head.setUint32(12, bytes.length);
  message.set(bytes, orderHead);
  return message;
}

export function answerBytes({ known, bytes }: Answer): Uint8Array {
  const message = new Uint8Array(answerHead + bytes.length);
  const head = new DataView(message.buffer);
  head.setUint32(0, known ? 1 : 0);
  head.setUint32(4, bytes.length);
  message.set(bytes, answerHead);
  return message;
}

/** Puts together what a pipe took apart. */
class Whole<T> {
  readonly #head: number;
  readonly #make: (head: DataView, bytes: Uint8Array) => T;
  #parts: Uint8Array[] = [];
  #held = 0;
  #needed: number;

  constructor(head: number, make: (head: DataView, bytes: Uint8Array) => T) {
    this.#head = head;
    this.#needed = head;
    this.#make = make;
  }

  take(part: Uint8Array): T[] {
    this.#parts.push(part);
    this.#held += part.length;
    const made: T[] = [];
    while (this.#held >= this.#needed) {
      const all = this.#parts.length === 1 ? (this.#parts[0] ?? part) : Buffer.concat(this.#parts);
      const head = new DataView(all.buffer, all.byteOffset, this.#head);
      this.#parts = [all];
      this.#needed = this.#head + head.getUint32(this.#head - 4);
      if (this.#held < this.#needed) break;
      made.push(this.#make(head, all.subarray(this.#head, this.#needed)));
      this.#parts = [all.subarray(this.#needed)];
      this.#held -= this.#needed;
      this.#needed = this.#head;
    }
    return made;
  }
}

export function orders(): { take(part: Uint8Array): Order[] } {
  return new Whole<Order>(orderHead, (head, bytes) => ({
    kind: head.getUint32(0) as OrderKind,
    terminal: head.getUint32(4),
    cols: head.getUint16(8),
    rows: head.getUint16(10),
    bytes,
  }));
}

export function answers(): { take(part: Uint8Array): Answer[] } {
  return new Whole<Answer>(answerHead, (head, bytes) => ({
    known: head.getUint32(0) === 1,
    bytes,
  }));
}
