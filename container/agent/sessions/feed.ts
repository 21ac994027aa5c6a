/**
 * Owns writing text into a pipe whose reader may be slow, stopped or gone, without ever waiting in the kernel.
 * Does not own the reader. What was not taken when it is closed is dropped.
 */
import { closeSync, constants, openSync, writeSync } from "node:fs";

const retryMs = 2;

export class Feed {
  readonly #fd: number;
  #left: Buffer = Buffer.alloc(0);
  #timer: Timer | undefined;
  #isClosed = false;

  /** Opens what `path` names for writing; throws where nobody reads a named pipe. */
  constructor(path: string) {
    this.#fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  }

  /** Of a pipe's write end, which stays the caller's. */
  static ofDescriptor(fd: number): Feed {
    return new Feed(`/proc/self/fd/${fd}`);
  }

  get isEmpty(): boolean {
    return this.#left.length === 0;
  }

  write(text: string): void {
    if (this.#isClosed) return;
    this.#left = Buffer.concat([this.#left, Buffer.from(text)]);
    if (this.#timer === undefined) this.#push();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#timer);
    closeSync(this.#fd);
  }

  #push(): void {
    this.#timer = undefined;
    try {
      while (this.#left.length > 0) {
        this.#left = this.#left.subarray(writeSync(this.#fd, this.#left));
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EAGAIN") {
        this.#timer = setTimeout(() => this.#push(), retryMs);
      } else {
        // Its reader is gone, and says so by its own end.
        this.#left = Buffer.alloc(0);
      }
    }
  }
}
