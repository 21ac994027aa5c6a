/** Encodes what the agent and its render worker, the same program, send each other: commands and a response to each. */
const commandHeadBytes = 16;
const responseHeadBytes = 8;

export const command = { begin: 1, write: 2, resize: 3, snapshot: 4, text: 5, free: 6 } as const;
type CommandKind = (typeof command)[keyof typeof command];

export type RenderCommand = {
  kind: CommandKind;
  terminal: number;
  cols: number;
  rows: number;
  bytes: Uint8Array;
};

/** `isKnown` is false when the worker has lost the terminal. */
export type RenderResponse = { isKnown: boolean; bytes: Uint8Array };

export function encodeCommand({ kind, terminal, cols, rows, bytes }: RenderCommand): Uint8Array {
  const message = new Uint8Array(commandHeadBytes + bytes.length);
  const head = new DataView(message.buffer);
  head.setUint32(0, kind);
  head.setUint32(4, terminal);
  head.setUint16(8, cols);
  head.setUint16(10, rows);
  head.setUint32(12, bytes.length);
  message.set(bytes, commandHeadBytes);
  return message;
}

export function encodeResponse({ isKnown, bytes }: RenderResponse): Uint8Array {
  const message = new Uint8Array(responseHeadBytes + bytes.length);
  const head = new DataView(message.buffer);
  head.setUint32(0, isKnown ? 1 : 0);
  head.setUint32(4, bytes.length);
  message.set(bytes, responseHeadBytes);
  return message;
}

/** Puts messages together again from the pieces in which a pipe delivers them. */
class MessageAssembler<T> {
  readonly #headBytes: number;
  readonly #decode: (head: DataView, bytes: Uint8Array) => T;
  #parts: Uint8Array[] = [];
  #bufferedBytes = 0;
  #neededBytes: number;

  constructor(headBytes: number, decode: (head: DataView, bytes: Uint8Array) => T) {
    this.#headBytes = headBytes;
    this.#neededBytes = headBytes;
    this.#decode = decode;
  }

  push(part: Uint8Array): T[] {
    this.#parts.push(part);
    this.#bufferedBytes += part.length;
    const messages: T[] = [];
    while (this.#bufferedBytes >= this.#neededBytes) {
      const all = this.#parts.length === 1 ? (this.#parts[0] ?? part) : Buffer.concat(this.#parts);
      const head = new DataView(all.buffer, all.byteOffset, this.#headBytes);
      this.#parts = [all];
      this.#neededBytes = this.#headBytes + head.getUint32(this.#headBytes - 4);
      if (this.#bufferedBytes < this.#neededBytes) break;
      messages.push(this.#decode(head, all.subarray(this.#headBytes, this.#neededBytes)));
      this.#parts = [all.subarray(this.#neededBytes)];
      this.#bufferedBytes -= this.#neededBytes;
      this.#neededBytes = this.#headBytes;
    }
    return messages;
  }
}

export function commandReader(): { push(part: Uint8Array): RenderCommand[] } {
  return new MessageAssembler<RenderCommand>(commandHeadBytes, (head, bytes) => ({
    kind: head.getUint32(0) as CommandKind,
    terminal: head.getUint32(4),
    cols: head.getUint16(8),
    rows: head.getUint16(10),
    bytes,
  }));
}

export function responseReader(): { push(part: Uint8Array): RenderResponse[] } {
  return new MessageAssembler<RenderResponse>(responseHeadBytes, (head, bytes) => ({
    isKnown: head.getUint32(0) === 1,
    bytes,
  }));
}
