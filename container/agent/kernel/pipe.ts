/**
 * Reads a pipe from its descriptor, and closes the descriptor. If `take` returns a promise, it reads nothing more until
 * that resolves, so that the writer waits. (The runtime's own pipes for children are sockets: a command could not open
 * /dev/stdout, and they are slower.)
 */
import { closeSync } from "node:fs";

type Take = (bytes: Uint8Array) => void | Promise<void>;

export class PipeReader {
  /** Resolves when the pipe has ended or reading was stopped, and the descriptor is closed. */
  readonly ended: Promise<void>;
  readonly #reader: ReturnType<typeof openReader>;

  constructor(fd: number, take: Take) {
    this.#reader = openReader(fd);
    this.ended = this.#read(take).finally(() => closeSync(fd));
  }

  /** What is still in the pipe stays unread. */
  stop(): void {
    this.#reader.cancel().catch(() => {});
  }

  async #read(take: Take): Promise<void> {
    for (;;) {
      const { done, value } = await this.#reader.read();
      if (done) return;
      const pause = take(value);
      if (pause !== undefined) await pause;
    }
  }
}

function openReader(fd: number) {
  return Bun.file(fd).stream().getReader();
}
