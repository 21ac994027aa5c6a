/** Reads the output of a terminal while `mayRead` allows it. While nobody reads, the kernel stops the program. */
export class Output {
  /** Resolves after the last byte, or after `stop`. */
  readonly ended: Promise<void>;
  readonly #reader: ReturnType<typeof openReader>;
  readonly #onBytes: (bytes: Uint8Array) => void;
  readonly #mayRead: () => boolean;
  #resume: (() => void) | undefined;
  #stopped = false;

  constructor(master: number, mayRead: () => boolean, onBytes: (bytes: Uint8Array) => void) {
    this.#reader = openReader(master);
    this.#mayRead = mayRead;
    this.#onBytes = onBytes;
    this.ended = this.#read();
  }

  /** To be called when the result of `mayRead` may have changed. */
  recheck(): void {
    if (this.#resume !== undefined && (this.#stopped || this.#mayRead())) this.#resume();
  }

  /** Leaves the rest of the output unread. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#reader.cancel().catch(() => {});
    this.recheck();
    await this.ended;
  }

  async #read(): Promise<void> {
    while (!this.#stopped) {
      if (!this.#mayRead()) {
        await this.#waitUntilAllowed();
        continue;
      }
      const read = await this.#reader.read().catch(readFailed);
      if (read.done) return;
      this.#onBytes(read.value);
    }
  }

  async #waitUntilAllowed(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#resume = resolve;
    await promise;
    this.#resume = undefined;
  }
}

/** EIO means that nobody has the other side of the terminal open. */
function readFailed(error: NodeJS.ErrnoException): { done: true; value: undefined } {
  if (error.code !== "EIO") console.error("the output of a terminal broke off:", error);
  return { done: true, value: undefined };
}

function openReader(fd: number) {
  return Bun.file(fd).stream().getReader();
}
