/** The standard input and output of a command, and its bytes in their encodings. */
import { type Stop, Wakeups } from "./waiting.ts";

const encoder = new TextEncoder();

export type Encoding = "utf8" | "base64";

/** Captures the output of a command up to its limit, in the requested encoding. */
export class Output {
  readonly #max: number;
  readonly #captured: { stdout: Uint8Array[]; stderr: Uint8Array[] } = { stdout: [], stderr: [] };
  #bytes = 0;
  truncated = false;

  constructor(max: number) {
    this.#max = max;
  }

  write(stream: "stdout" | "stderr", output: string | Uint8Array): void {
    const bytes = bytesOf(output);
    const captured = bytes.subarray(0, Math.max(0, this.#max - this.#bytes));
    if (captured.length < bytes.length) this.truncated = true;
    this.#bytes += captured.length;
    this.#captured[stream].push(captured);
  }

  text(stream: "stdout" | "stderr", encoding: Encoding): string {
    const bytes = concat(this.#captured[stream]);
    return encoding === "base64" ? toBase64(bytes) : new TextDecoder().decode(bytes);
  }
}

export function bytesOf(output: string | Uint8Array): Uint8Array {
  return typeof output === "string" ? encoder.encode(output) : output;
}

export function concat(pieces: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let offset = 0;
  for (const piece of pieces) {
    joined.set(piece, offset);
    offset += piece.length;
  }
  return joined;
}

export function toBase64(bytes: Uint8Array): string {
  return btoa(latin1(bytes));
}

/** One character per byte. */
export function latin1(bytes: Uint8Array): string {
  const pieces: string[] = [];
  for (let from = 0; from < bytes.length; from += 8192) {
    pieces.push(String.fromCharCode(...bytes.subarray(from, from + 8192)));
  }
  return pieces.join("");
}

export function decode(text: string | undefined, encoding: Encoding): Uint8Array {
  if (text === undefined) return new Uint8Array();
  if (encoding === "utf8") return encoder.encode(text);
  return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
}

/** The standard input of one command: bytes that wait to be read, and the end. */
export class Input {
  readonly #waiting: Uint8Array[] = [];
  readonly #changes = new Wakeups();
  acceptedBytes = 0;
  ended = false;

  static of(bytes: Uint8Array): Input {
    const input = new Input();
    if (bytes.length > 0) input.write(bytes);
    input.end();
    return input;
  }

  write(bytes: Uint8Array): void {
    this.acceptedBytes += bytes.length;
    this.#waiting.push(bytes);
    this.#changes.wake();
  }

  end(): void {
    this.ended = true;
    this.#changes.wake();
  }

  /** Undefined at the end. */
  async read(stop: Stop): Promise<Uint8Array | undefined> {
    while (this.#waiting.length === 0) {
      if (this.ended) return undefined;
      await stop.wait<void>((done) => this.#changes.once(done));
    }
    return this.#waiting.shift();
  }
}
