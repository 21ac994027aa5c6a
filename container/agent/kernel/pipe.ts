/**
 * Owns reading of a pipe from its descriptor, at the pace of events, and the closing of that descriptor.
 * Where `take` answers a promise, nothing more is read until that resolves: then the writer waits.
 * Does not own what is done with the bytes. (The runtime's own pipes for children are sockets: a command
 * could not open /dev/stdout, and they are slower.)
 */
import { closeSync } from "node:fs";

type Take = (bytes: Uint8Array) => void | Promise<void>;

export class PipeReader {
  /** Resolves when the pipe has ended or reading was stopped; the descriptor is closed then. */
  readonly ended: Promise<void>;
  readonly #reader: ReturnType<typeof openReader>;

  constructor(fd: number, take: Take) {
    this.#reader = openReader(fd);
    this.ended = this.#read(take).finally(() => closeSync(fd));
  }

  /** Whatever is still in the pipe is left unread. */
  stop(): void {
    this.#reader.cancel().catch(() => {});
  }

  async #read(take: Take): Promise<void> {
    for (;;) {
      const { done, value } = await this.#reader.read();
      if (done) return;
      const held = take(value);
      if (held !== undefined) await held;
    }
  }
}

function openReader(fd: number) {
  return Bun.file(fd).stream().getReader();
}
