/**
 * A log file with a size limit: when full, it is renamed to `<name>.old`. Lines that cannot be written, as on a full
 * disk, are dropped, because a log must never end the program that it logs.
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
      if (this.bytes + chunk.length > this.limit) this.#rotate();
      // A chunk of a pipe is at most 64 KiB, so this never blocks for long.
      this.bytes += writeSync(this.fd, chunk);
    } catch {
      // A log that cannot be written has nowhere to report that.
    }
  }

  /** Creates the new file before it closes the old one. */
  #rotate() {
    const next = openSync(`${this.path}.new`, "a", 0o600);
    renameSync(this.path, `${this.path}.old`);
    renameSync(`${this.path}.new`, this.path);
    closeSync(this.fd);
    this.fd = next;
    this.bytes = 0;
  }

  /** Returns the last lines, which usually say why a program ended. */
  tail(lines = 5) {
    return readFileSync(this.path, "utf8").trimEnd().split("\n").slice(-lines).join("\n");
  }
}
