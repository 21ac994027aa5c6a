/** Writes into a pipe whose reader may be slow or dead, without blocking. Drops the rest when it is closed. */
import { closeSync, constants, openSync, writeSync } from "node:fs";
import { limits } from "../../../src/protocol/limits.ts";

const retryMs = 2;

export class PipeWriter {
  readonly #fd: number;
  #pending: Buffer = Buffer.alloc(0);
  #timer: Timer | undefined;
  #isClosed = false;
  #isBroken = false;

  /** Opens `path` for writing; throws if it is a named pipe without a reader. */
  constructor(path: string) {
    this.#fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  }

  /** The descriptor stays open for the caller. */
  static ofDescriptor(fd: number): PipeWriter {
    return new PipeWriter(`/proc/self/fd/${fd}`);
  }

  /**
   * Waits until a reader has opened the named pipe and read everything. False: too late, or not everything. It stops
   * early when `over` resolves.
   */
  static async toReader(path: string, bytes: Buffer, over: Promise<unknown>): Promise<boolean> {
    const deadline = performance.now() + limits.sessionReadyMs;
    let isOver = false;
    over.then(() => {
      isOver = true;
    });
    const mayContinue = () => !isOver && performance.now() < deadline;
    let writer: PipeWriter | undefined;
    try {
      while (writer === undefined && mayContinue()) {
        writer = PipeWriter.#tryOpen(path);
        if (writer === undefined) await Bun.sleep(retryMs);
      }
      writer?.write(bytes);
      while (writer !== undefined && writer.#pending.length > 0 && mayContinue())
        await Bun.sleep(retryMs);
      return writer !== undefined && !writer.#isBroken && writer.#pending.length === 0;
    } finally {
      writer?.close();
    }
  }

  /** Undefined: nobody has opened it for reading. */
  static #tryOpen(path: string): PipeWriter | undefined {
    try {
      return new PipeWriter(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENXIO") return undefined;
      throw error;
    }
  }

  write(bytes: Buffer): void {
    if (this.#isClosed) return;
    this.#pending = Buffer.concat([this.#pending, bytes]);
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
      while (this.#pending.length > 0) {
        this.#pending = this.#pending.subarray(writeSync(this.#fd, this.#pending));
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EAGAIN") {
        this.#timer = setTimeout(() => this.#push(), retryMs);
      } else {
        // The reader has ended, which its own exit reports.
        this.#isBroken = true;
        this.#pending = Buffer.alloc(0);
      }
    }
  }
}
