/**
 * Owns a real terminal for tests: a shell in tmux, what is typed, what is shown.
 * Does not own the person. Whoever makes one disposes of it.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { root } from "../../../../container/launch/paths.js";
import { until } from "../../until.ts";
import type { Person } from "../cli-user.ts";

export const hasTmux = spawnSync("tmux", ["-V"]).status === 0;

/** A person's shell in a folder, on a screen. */
export class Screen implements Disposable {
  readonly #person: Person;
  readonly #folder: string;
  readonly #socket: string;

  constructor(person: Person, folder: string, cols = 90, rows = 24) {
    this.#person = person;
    this.#folder = folder;
    this.#socket = join(person.home, `tmux-${Math.random().toString(36).slice(2)}`);
    const size = ["-x", String(cols), "-y", String(rows)];
    const berth = `${process.execPath} ${join(root, "src/cli/main.ts")}`;
    const setUp = `${this.#socket}.sh`;
    writeFileSync(setUp, `unset ENV; berth() { ${berth} "$@"; }; stty -g > ${this.before}\n`);
    this.tmux("new-session", "-d", ...size, "env", "PS1=here> ", `ENV=${setUp}`, "sh");
    this.#prompted();
  }

  /** What is typed before the shell asks for it is shown before its prompt, and the first output on the prompt's line. */
  #prompted(): void {
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
    const env = { ...this.#person.environment, TERM: "xterm-256color" };
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
    const holds = () =>
      typeof what === "string" ? this.text.includes(what) : what.test(this.text);
    await until(`shown: ${what}`, holds).catch((thrown) => {
      throw new Error(`${thrown.message}; but\n${this.text}`);
    });
  }

  /** Its modes are those of the beginning, and keys are echoed by the shell of here. */
  async isAsBefore(): Promise<void> {
    const mark = `same${Math.random().toString(36).slice(2, 6)}`;
    this.type(
      `stty -g | cmp - ${this.before} && echo ${mark.slice(0, 4)}''${mark.slice(4)}`,
      "Enter",
    );
    await this.shows(mark);
    expect(this.tmux("display-message", "-p", "#{alternate_on}#{mouse_any_flag}").trim()).toBe(
      "00",
    );
  }

  [Symbol.dispose](): void {
    this.tmux("kill-server");
  }
}
