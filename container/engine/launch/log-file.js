/**
 * Owns a log on disk that never grows beyond its bound: when full, it becomes `<name>.old`.
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
    if (this.bytes + chunk.length > this.limit) {
      closeSync(this.fd);
      renameSync(this.path, `${this.path}.old`);
      this.fd = openSync(this.path, "a", 0o600);
      this.bytes = 0;
    }
    // A chunk of a pipe is at most 64 KiB, so this never waits long.
    writeSync(this.fd, chunk);
    this.bytes += chunk.length;
  }

  /** The end of it, for the person who must know why a program ended. */
  tail(lines = 5) {
    return readFileSync(this.path, "utf8").trimEnd().split("\n").slice(-lines).join("\n");
  }
}
