/**
 * Owns one program below the launcher: its start, its log, its end within a bound.
 * Does not own why it is started again or not: engine.js and start.js decide.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { LogFile } from "./log-file.js";

/** @typedef {{ code: number | null, signal: string | null }} Ended */

export class Child {
  /**
   * @param {string} name
   * @param {string} data
   * @param {{ program: string, args: string[], env: Record<string, string>, cwd?: string, control?: boolean }} what
   */
  constructor(name, data, { program, args, env, cwd = "/", control = false }) {
    this.name = name;
    this.log = new LogFile(join(data, "logs", `${name}.log`));
    // A group of its own: Ctrl-C reaches the launcher alone, which ends the rest in order.
    this.process = spawn(program, args, {
      cwd,
      env,
      detached: true,
      stdio: ["pipe", "pipe", "pipe", control ? "pipe" : "ignore"],
    });
    /** @type {Promise<Ended>} */
    this.ended = new Promise((resolve) => {
      this.process.once("error", (error) => {
        this.log.write(Buffer.from(`${error.message}\n`));
        resolve({ code: 127, signal: null });
      });
      this.process.once("exit", (code, signal) => resolve({ code, signal }));
    });
    this.process.stderr?.on("data", (chunk) => this.log.write(chunk));
    // A program that has ended cannot be written to; that it has ended is told by `ended`.
    this.process.stdin?.on("error", () => {});
  }

  get pid() {
    return this.process.pid ?? -1;
  }

  /** What it prints goes to its log as well. */
  logOutput() {
    this.process.stdout?.on("data", (chunk) => this.log.write(chunk));
  }

  /**
   * The first line of a stream that `read` makes something of; undefined when it ended or took too long.
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
          const made = read(line);
          if (made === undefined) continue;
          clearTimeout(timer);
          resolve(made);
        }
      });
    });
  }

  /**
   * Asks it to end, and makes it when it does not.
   * @param {() => void} ask
   * @param {number} limitMs
   */
  async end(ask, limitMs) {
    ask();
    const timer = setTimeout(() => this.kill(), limitMs);
    await this.ended;
    clearTimeout(timer);
  }

  /** At once, with what it has started in its group. */
  kill() {
    try {
      if (this.process.pid !== undefined) process.kill(-this.process.pid, "SIGKILL");
    } catch {
      // Nothing of it is left.
    }
  }
}
