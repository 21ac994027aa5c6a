/**
 * Captures the output of a command up to its limit, in the requested encoding.
 */
const encoder = new TextEncoder();

export type Encoding = "utf8" | "base64";

export class Output {
  readonly #max: number;
  readonly #kept: { stdout: Uint8Array[]; stderr: Uint8Array[] } = { stdout: [], stderr: [] };
  #bytes = 0;
  truncated = false;

  constructor(max: number) {
    this.#max = max;
  }

  write(stream: "stdout" | "stderr", output: string | Uint8Array): void {
    const bytes = bytesOf(output);
    const kept = bytes.subarray(0, Math.max(0, this.#max - this.#bytes));
    if (kept.length < bytes.length) this.truncated = true;
    this.#bytes += kept.length;
    this.#kept[stream].push(kept);
  }

  text(stream: "stdout" | "stderr", encoding: Encoding): string {
    const bytes = concat(this.#kept[stream]);
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
