/**
 * Owns the newest bytes of something that grows, in a file of a fixed size without a name.
 * Does not own which of them still count (log.ts). Reads and writes go to the kernel's cache and do not wait.
 */
import { closeSync, constants, openSync, readSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";

export class Ring {
  readonly bytes: number;
  readonly #fd: number;

  constructor(folder: string, bytes: number) {
    this.bytes = bytes;
    this.#fd = openNameless(folder);
  }

  /** `at`: how many bytes came before. Throws where the disk is full. */
  write(at: number, bytes: Uint8Array): void {
    const skipped = Math.max(0, bytes.length - this.bytes);
    for (let done = skipped; done < bytes.length; ) {
      const { position, length } = this.#piece(at + done, bytes.length - done);
      done += writeSync(this.#fd, bytes, done, length, position);
    }
  }

  /** They must be among the newest. */
  read(at: number, length: number): Buffer {
    const bytes = Buffer.allocUnsafeSlow(length);
    for (let done = 0; done < length; ) {
      const piece = this.#piece(at + done, length - done);
      const read = readSync(this.#fd, bytes, done, piece.length, piece.position);
      if (read === 0) throw new Error("a log ends before its end");
      done += read;
    }
    return bytes;
  }

  close(): void {
    closeSync(this.#fd);
  }

  /** Up to the end of the file. */
  #piece(at: number, length: number): { position: number; length: number } {
    const position = at % this.bytes;
    return { position, length: Math.min(length, this.bytes - position) };
  }
}

/** O_TMPFILE, with the O_DIRECTORY that belongs to it. */
const nameless = 0o20000000 | constants.O_DIRECTORY;
const ownerOnly = 0o600;

/** Nobody can open it, and whatever becomes of the agent, nothing is left of it. */
function openNameless(folder: string): number {
  try {
    return openSync(folder, constants.O_RDWR | nameless, ownerOnly);
  } catch {
    // A file system without them.
    const path = join(folder, `.berth-${crypto.randomUUID()}`);
    const fd = openSync(path, "wx+", ownerOnly);
    unlinkSync(path);
    return fd;
  }
}
