/**
 * The standard input of one command: bytes that wait to be read, and the end.
 */
import type { Stop } from "./stop.ts";

export class Input {
  readonly #waiting: Uint8Array[] = [];
  readonly #readers = new Set<() => void>();
  #taken = 0;
  #ended = false;

  static of(bytes: Uint8Array): Input {
    const input = new Input();
    if (bytes.length > 0) input.write(bytes);
    input.end();
    return input;
  }

  get acceptedBytes(): number {
    return this.#taken;
  }

  get ended(): boolean {
    return this.#ended;
  }

  write(bytes: Uint8Array): void {
    this.#taken += bytes.length;
    this.#waiting.push(bytes);
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  /** Undefined at the end. */
  async read(stop: Stop): Promise<Uint8Array | undefined> {
    while (this.#waiting.length === 0) {
      if (this.#ended) return undefined;
      await stop.wait<void>((done) => {
        this.#readers.add(done);
        return () => this.#readers.delete(done);
      });
    }
    return this.#waiting.shift();
  }

  #wake(): void {
    const readers = [...this.#readers];
    this.#readers.clear();
    for (const reader of readers) reader();
  }
}
