/** Stores the newest bytes of a growing stream in a nameless file, whose reads and writes do not block. */
import { closeSync, constants, openSync, readSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";

export class Ring {
  readonly bytes: number;
  readonly #fd: number;

  constructor(folder: string, bytes: number) {
    this.bytes = bytes;
    this.#fd = openNameless(folder);
  }

  /** `offset` counts the bytes written before. Throws when the disk is full. */
  write(offset: number, bytes: Uint8Array): void {
    const skipped = Math.max(0, bytes.length - this.bytes);
    for (let done = skipped; done < bytes.length; ) {
      const { position, length } = this.#contiguous(offset + done, bytes.length - done);
      done += writeSync(this.#fd, bytes, done, length, position);
    }
  }

  /** The bytes must be among the newest. */
  read(offset: number, length: number): Buffer {
    const bytes = Buffer.allocUnsafeSlow(length);
    for (let done = 0; done < length; ) {
      const piece = this.#contiguous(offset + done, length - done);
      const read = readSync(this.#fd, bytes, done, piece.length, piece.position);
      if (read === 0) throw new Error("a log ends before its end");
      done += read;
    }
    return bytes;
  }

  close(): void {
    closeSync(this.#fd);
  }

  /** The part that does not wrap around the end of the file. */
  #contiguous(offset: number, length: number): { position: number; length: number } {
    const position = offset % this.bytes;
    return { position, length: Math.min(length, this.bytes - position) };
  }
}

/** O_TMPFILE, which includes O_DIRECTORY. */
const nameless = 0o20000000 | constants.O_DIRECTORY;
const ownerOnly = 0o600;

/** Nobody else can open the file, and the kernel frees it however the agent ends. */
function openNameless(folder: string): number {
  try {
    return openSync(folder, constants.O_RDWR | nameless, ownerOnly);
  } catch {
    // This file system has no nameless files.
    const path = join(folder, `.berth-${crypto.randomUUID()}`);
    const fd = openSync(path, "wx+", ownerOnly);
    unlinkSync(path);
    return fd;
  }
}
