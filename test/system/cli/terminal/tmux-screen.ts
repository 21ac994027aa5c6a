/** A real terminal for tests: a shell in tmux, with what is typed and what is shown. */
import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { root } from "../../../../container/launch/paths.js";
import { until } from "../../../until.ts";
import type { CliUser } from "../cli-user.ts";

export const hasTmux = spawnSync("tmux", ["-V"]).status === 0;

/** A CLI user's shell in a folder, on a screen. */
export class TmuxScreen implements Disposable {
  readonly #user: CliUser;
  readonly #folder: string;
  readonly #socket: string;

  constructor(user: CliUser, folder: string, cols = 90, rows = 24) {
    this.#user = user;
    this.#folder = folder;
    this.#socket = join(user.home, `tmux-${Math.random().toString(36).slice(2)}`);
    const size = ["-x", String(cols), "-y", String(rows)];
    const berth = `${process.execPath} ${join(root, "src/cli/main.ts")}`;
    const setupPath = `${this.#socket}.sh`;
    writeFileSync(setupPath, `unset ENV; berth() { ${berth} "$@"; }; stty -g > ${this.before}\n`);
    this.tmux("new-session", "-d", ...size, "env", "PS1=here> ", `ENV=${setupPath}`, "sh");
    this.#waitForPrompt();
  }

  /** Keys typed before the prompt would appear before it, and the first output on the prompt's line. */
  #waitForPrompt(): void {
    for (let left = 3_000; left > 0; left--) {
      if (this.text.trim() === "here>") return;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
    throw new Error(`the shell does not ask: ${this.text}`);
  }

  get before(): string {
    return `${this.#socket}.before`;
  }

  tmux(...args: string[]): string {
    const env = { ...this.#user.environment, TERM: "xterm-256color" };
    const all = ["-S", this.#socket, "-f", "/dev/null", ...args];
    return execFileSync("tmux", all, { cwd: this.#folder, env, encoding: "utf8" });
  }

  type(...keys: string[]): void {
    this.tmux("send-keys", ...keys);
  }

  get text(): string {
    return this.tmux("capture-pane", "-p");
  }

  async shows(what: string | RegExp): Promise<void> {
    const isShown = () =>
      typeof what === "string" ? this.text.includes(what) : what.test(this.text);
    await until(`shown: ${what}`, isShown).catch((thrown) => {
      throw new Error(`${thrown.message}; but\n${this.text}`);
    });
  }

  /** The last command has ended with this exit code, and the terminal is as before. */
  async hasEnded(code: number): Promise<void> {
    this.type("echo code-$?", "Enter");
    await this.shows(`code-${code}`);
    await this.isAsBefore();
  }

  /** The process that the shell runs. */
  get childPid(): number {
    const shell = this.tmux("display-message", "-p", "#{pane_pid}").trim();
    const [child] = execFileSync("pgrep", ["-P", shell], { encoding: "utf8" }).split("\n");
    return Number(child);
  }

  /** The terminal's modes are as at the beginning, and the local shell echoes keys. */
  async isAsBefore(): Promise<void> {
    const marker = `same${Math.random().toString(36).slice(2, 6)}`;
    this.type(
      `stty -g | cmp - ${this.before} && echo ${marker.slice(0, 4)}''${marker.slice(4)}`,
      "Enter",
    );
    await this.shows(marker);
    expect(this.tmux("display-message", "-p", "#{alternate_on}#{mouse_any_flag}").trim()).toBe(
      "00",
    );
  }

  [Symbol.dispose](): void {
    this.tmux("kill-server");
  }
}
