/**
 * Owns writing text into a pipe whose reader may be slow, stopped or gone, without ever waiting in the kernel.
 * Does not own the reader. What was not taken when it is closed is dropped.
 */
import { closeSync, constants, openSync, writeSync } from "node:fs";
import { limits } from "../../../src/protocol/limits.ts";

const retryMs = 2;

export class Feed {
  readonly #fd: number;
  #left: Buffer = Buffer.alloc(0);
  #timer: Timer | undefined;
  #isClosed = false;
  #isBroken = false;

  /** Opens what `path` names for writing; throws where nobody reads a named pipe. */
  constructor(path: string) {
    this.#fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  }

  /** Of a pipe's write end, which stays the caller's. */
  static ofDescriptor(fd: number): Feed {
    return new Feed(`/proc/self/fd/${fd}`);
  }

  /** Waits for somebody to open the named pipe, and until all is read. False: not in time, or not all. */
  static async toReader(path: string, bytes: Buffer, over: Promise<unknown>): Promise<boolean> {
    const deadline = performance.now() + limits.sessionReadyMs;
    let isOver = false;
    over.then(() => {
      isOver = true;
    });
    const isTime = () => !isOver && performance.now() < deadline;
    let feed: Feed | undefined;
    try {
      while (feed === undefined && isTime()) {
        feed = Feed.#opened(path);
        if (feed === undefined) await Bun.sleep(retryMs);
      }
      feed?.write(bytes);
      while (feed !== undefined && feed.#left.length > 0 && isTime()) await Bun.sleep(retryMs);
      return feed !== undefined && !feed.#isBroken && feed.#left.length === 0;
    } finally {
      feed?.close();
    }
  }

  /** Undefined: nobody has opened it for reading. */
  static #opened(path: string): Feed | undefined {
    try {
      return new Feed(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENXIO") return undefined;
      throw error;
    }
  }

  write(bytes: Buffer): void {
    if (this.#isClosed) return;
    this.#left = Buffer.concat([this.#left, bytes]);
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
        this.#isBroken = true;
        this.#left = Buffer.alloc(0);
      }
    }
  }
}
