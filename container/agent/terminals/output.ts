/**
 * Owns reading what a terminal writes, only while it may be read; unread, the kernel stops the program.
 * Does not own whether it may: the terminal decides by its viewers. Nor the descriptor: the PTY has it.
 */

export class Output {
  /** Resolves after the last byte, or when reading was stopped. */
  readonly ended: Promise<void>;
  readonly #reader: ReturnType<typeof openReader>;
  readonly #take: (bytes: Uint8Array) => void;
  readonly #mayRead: () => boolean;
  #waiting: (() => void) | undefined;
  #stopped = false;

  constructor(master: number, mayRead: () => boolean, take: (bytes: Uint8Array) => void) {
    this.#reader = openReader(master);
    this.#mayRead = mayRead;
    this.#take = take;
    this.ended = this.#read();
  }

  /** To be called when the answer to `mayRead` may have changed. */
  look(): void {
    if (this.#waiting !== undefined && (this.#stopped || this.#mayRead())) this.#waiting();
  }

  /** Whatever is still to be read is left. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#reader.cancel().catch(() => {});
    this.look();
    await this.ended;
  }

  async #read(): Promise<void> {
    while (!this.#stopped) {
      if (!this.#mayRead()) {
        await this.#allowed();
        continue;
      }
      const read = await this.#reader.read().catch(endOfTerminal);
      if (read.done) return;
      this.#take(read.value);
    }
  }

  async #allowed(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting = resolve;
    await promise;
    this.#waiting = undefined;
  }
}

/** EIO is how a terminal says that nobody has its other side open. */
function endOfTerminal(error: NodeJS.ErrnoException): { done: true; value: undefined } {
  if (error.code !== "EIO") console.error("the output of a terminal broke off:", error);
  return { done: true, value: undefined };
}

function openReader(fd: number) {
  return Bun.file(fd).stream().getReader();
}
