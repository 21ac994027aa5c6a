/** One program below the launcher: its start, its log, and its end within a time limit. */
import { spawn } from "node:child_process";
import { closeSync, fstatSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";

const logBytesMax = 8 * 1024 * 1024;

/** @typedef {{ code: number | null, signal: string | null }} Exit */

export class Child {
  /**
   * @param {string} name
   * @param {string} data
   * @param {{ program: string, args: string[], env: Record<string, string>, cwd?: string, control?: boolean }} options
   */
  constructor(name, data, { program, args, env, cwd = "/", control = false }) {
    this.name = name;
    this.log = new LogFile(join(data, "logs", `${name}.log`));
    // A process group of its own, so that Ctrl-C reaches only the launcher, which ends the rest in order.
    this.process = spawn(program, args, {
      cwd,
      env,
      detached: true,
      stdio: ["pipe", "pipe", "pipe", control ? "pipe" : "ignore"],
    });
    /** @type {Promise<Exit>} */
    this.ended = new Promise((resolve) => {
      this.process.once("error", (error) => {
        this.log.write(Buffer.from(`${error.message}\n`));
        resolve({ code: 127, signal: null });
      });
      this.process.once("exit", (code, signal) => resolve({ code, signal }));
    });
    this.process.stderr?.on("data", (chunk) => this.log.write(chunk));
    this.process.once("close", () => this.log.close());
    // Writing to a program that has ended fails; `ended` reports that end.
    this.process.stdin?.on("error", () => {});
  }

  get pid() {
    return this.process.pid ?? -1;
  }

  /** Copies its stdout to its log as well. */
  logOutput() {
    this.process.stdout?.on("data", (chunk) => this.log.write(chunk));
  }

  /**
   * Resolves with the first value that `read` returns for a line of the stream; undefined if the program ends or the
   * time is up.
   * @template T
   * @param {import("node:stream").Readable | null | undefined} stream
   * @param {(line: string) => T | undefined} read
   * @param {number} limitMs
   * @returns {Promise<T | undefined>}
   */
  firstLine(stream, read, limitMs) {
    return new Promise((resolve) => {
      let text = "";
      const timer = setTimeout(() => resolve(undefined), limitMs);
      this.ended.then(() => resolve(undefined)).finally(() => clearTimeout(timer));
      stream?.on("data", (chunk) => {
        text = (text + chunk).slice(-65536);
        const lines = text.split("\n");
        text = lines.pop() ?? "";
        for (const line of lines) {
          const value = read(line);
          if (value === undefined) continue;
          clearTimeout(timer);
          resolve(value);
        }
      });
    });
  }

  /**
   * Requests its end, and kills it after the time limit.
   * @param {() => void} requestEnd
   * @param {number} limitMs
   */
  async end(requestEnd, limitMs) {
    requestEnd();
    const timer = setTimeout(() => this.kill(), limitMs);
    await this.ended;
    clearTimeout(timer);
  }

  /** Kills its whole process group at once. */
  kill() {
    try {
      if (this.process.pid !== undefined) process.kill(-this.process.pid, "SIGKILL");
    } catch {
      // The group has ended.
    }
  }
}

/**
 * A log file with a size limit: when full, it is renamed to `<name>.old`. Lines that cannot be written, as on a full
 * disk, are dropped, because a log must never end the program that it logs.
 */
export class LogFile {
  /** @param {string} path @param {number} [limit] */
  constructor(path, limit = logBytesMax) {
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

  /** Later writes are dropped. */
  close() {
    if (this.fd >= 0) closeSync(this.fd);
    this.fd = -1;
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
