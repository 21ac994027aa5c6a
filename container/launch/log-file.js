/**
 * Owns a log on disk that never grows beyond its bound: when full, it becomes `<name>.old`. On a full disk it is left
 * out: a line that is lost must not end what it tells of.
 * Does not own what is written into it.
 */
import { closeSync, fstatSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";

const bytesMax = 8 * 1024 * 1024;

export class LogFile {
  /** @param {string} path @param {number} [limit] */
  constructor(path, limit = bytesMax) {
    this.path = path;
    this.limit = limit;
    this.fd = openSync(path, "a", 0o600);
    this.bytes = fstatSync(this.fd).size;
  }

  /** @param {Buffer} chunk */
  write(chunk) {
    try {
      if (this.bytes + chunk.length > this.limit) this.#begin();
      // A chunk of a pipe is at most 64 KiB, so this never waits long.
      this.bytes += writeSync(this.fd, chunk);
    } catch {
      // There is nowhere to tell it.
    }
  }

  /** The new file is there before the old one is let go of. */
  #begin() {
    const next = openSync(`${this.path}.new`, "a", 0o600);
    renameSync(this.path, `${this.path}.old`);
    renameSync(`${this.path}.new`, this.path);
    closeSync(this.fd);
    this.fd = next;
    this.bytes = 0;
  }

  /** The end of it, for the person who must know why a program ended. */
  tail(lines = 5) {
    return readFileSync(this.path, "utf8").trimEnd().split("\n").slice(-lines).join("\n");
  }
}
