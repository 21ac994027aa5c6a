/**
 * Proves what takes a person's terminal, in a real one (tmux): `berth attach`, `berth exec --tty`; and `berth lock`.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { root } from "../../container/engine/launch/places.js";
import { connect, type SandboxHandle } from "../../src/client/index.ts";
import { type Server, startServer } from "../e2e/server.ts";
import { until } from "../e2e/until.ts";
import { Person } from "./person.ts";

const hasTmux = spawnSync("tmux", ["-V"]).status === 0;

let server: Server;
let person: Person;
let repo: string;
let sandbox: SandboxHandle;
beforeAll(async () => {
  server = await startServer();
  person = new Person(server);
  repo = person.repo("app");
  const made = await person.berth(["exec", "--json", "--", "true"], { cwd: repo });
  sandbox = connect(server).sandbox(JSON.parse(made.stdout).sandbox);
});
afterAll(async () => {
  person[Symbol.dispose]();
  await server[Symbol.asyncDispose]();
});

/** A person's shell on a screen. */
class Screen implements Disposable {
  readonly #socket = join(person.home, `tmux-${Math.random().toString(36).slice(2)}`);

  constructor(cols = 90, rows = 24) {
    const size = ["-x", String(cols), "-y", String(rows)];
    const berth = `${process.execPath} ${join(root, "src/cli/main.ts")}`;
    this.tmux("new-session", "-d", ...size, "env", "PS1=here> ", "sh");
    this.type(`berth() { ${berth} "$@"; }; stty -g > ${this.before}; clear`, "Enter");
  }

  get before(): string {
    return `${this.#socket}.before`;
  }

  tmux(...args: string[]): string {
    const env = { ...person.environment, TERM: "xterm-256color" };
    const all = ["-S", this.#socket, "-f", "/dev/null", ...args];
    return execFileSync("tmux", all, { cwd: repo, env, encoding: "utf8" });
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

describe.skipIf(!hasTmux)("a terminal of the sandbox on one's own", () => {
  test("[LV16] attach gives a shell, follows the size, is left by its key, and is there again", async () => {
    using screen = new Screen();
    screen.type("berth attach", "Enter");
    await screen.shows("leaves it");
    screen.type("cd /workspace; echo in-$((40+2)); stty size", "Enter");
    await screen.shows(/in-42\n24 90/);
    screen.tmux("resize-window", "-x", "70", "-y", "20");
    await until("the size is told", async () => (await sandbox.terminal("main")).cols === 70);
    screen.type("C-\\");
    await screen.shows("left terminal main");
    // Below what was there: nothing of it is written over.
    expect(screen.text.indexOf("left terminal main")).toBeGreaterThan(screen.text.indexOf("in-42"));
    await screen.isAsBefore();
    expect((await sandbox.terminal("main")).viewers).toBe(0);
    screen.type("clear; berth attach", "Enter");
    await screen.shows("in-42");
    screen.type("exit 5", "Enter");
    await screen.shows("here>");
    screen.type("echo code-$?", "Enter");
    await screen.shows("code-5");
    await screen.isAsBefore();
  });

  test("[LV16] a full-screen program works, and the screen is as before when attach is ended by TERM", async () => {
    using screen = new Screen();
    screen.type("berth attach full", "Enter");
    await screen.shows("leaves it");
    screen.type("seq 1 200 | less", "Enter");
    await screen.shows(/\n23\n:/);
    screen.type("G");
    await screen.shows("200\n(END)");
    const shell = screen.tmux("display-message", "-p", "#{pane_pid}").trim();
    const [child = ""] = execFileSync("pgrep", ["-P", shell], { encoding: "utf8" }).split("\n");
    process.kill(Number(child), "SIGTERM");
    await screen.shows("here>");
    screen.type("echo code-$?", "Enter");
    await screen.shows("code-143");
    await screen.isAsBefore();
    expect((await sandbox.terminals()).terminals.map(({ id }) => id)).toEqual(["full"]);
    await sandbox.endTerminal("full");
  });

  test("[LV17] exec --tty gives a command a terminal, its code and its changes, and leaves no terminal behind", async () => {
    using screen = new Screen();
    screen.type(
      "berth exec --tty -- sh -c 'tty && stty size; echo > made-by-tty; exit 9'",
      "Enter",
    );
    await screen.shows(/\/dev\/pts\/\d+\n24 90/);
    await screen.shows("changed here: made-by-tty");
    screen.type("echo code-$?", "Enter");
    await screen.shows("code-9");
    await screen.isAsBefore();
    expect((await sandbox.terminals()).terminals).toEqual([]);
    expect(await sandbox.lease()).toMatchObject({ state: "free" });
  });
});

describe("berth lock", () => {
  const berth = `${process.execPath} ${join(root, "src/cli/main.ts")}`;

  test("[LV18] holds the lease while a local command runs, which may use it, and passes on its code", async () => {
    const script = `${berth} lock status; ${berth} exec -- echo inside; exit 6`;
    const ran = await person.berth(["lock", "--", "sh", "-c", script], { cwd: repo });
    expect(ran).toMatchObject({ code: 6, signal: null });
    expect(ran.stdout).toMatch(/^held by .+ for \d+ s\ninside\n$/);
    await until("it is free", async () => (await sandbox.lease()).state === "free");
    const missing = await person.berth(["lock", "--", "no-such-program"], { cwd: repo });
    expect(missing.code).toBe(127);
  });

  test("[LV18] break takes it from its holder, whose local command is ended", async () => {
    const held = person.start(["lock", "--", "sleep", "600"], { cwd: repo });
    await until("it is held", async () => (await sandbox.lease()).state === "held");
    const unsaid = await person.berth(["lock", "break"], { cwd: repo });
    expect(unsaid).toMatchObject({ code: 1 });
    expect(unsaid.stderr).toContain("--reason");
    const broken = await person.berth(["lock", "break", "--reason", "a test"], { cwd: repo });
    expect(broken.stdout).toMatch(/^taken from /);
    const ended = await held.ended;
    expect(ended.code).toBe(1);
    expect(ended.stderr).toMatch(/^error: The lease has ended: broken by local: a test\.\nhint: /m);
    expect(await person.json(["lock", "status"], { cwd: repo })).toMatchObject({ state: "free" });
  });
});
