import { spawn } from "node:child_process";
import { join } from "node:path";
import { Terminal } from "@xterm/headless";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { root } from "../../../../container/launch/paths.js";
import { type SharedServer, useSharedServer } from "../../shared-server.ts";
import { until } from "../../until.ts";
import { Person } from "../cli-user.ts";

const cols = 80;
const rows = 24;

/** A real terminal by `script`, and what a person would see on it. */
class Screen {
  readonly #terminal = new Terminal({ cols, rows, allowProposedApi: true });
  readonly #child: ReturnType<typeof spawn>;
  readonly ended: Promise<number | null>;
  /** All that was ever written. */
  written = "";

  constructor(person: Person, args: string[], cwd: string, env: Record<string, string> = {}) {
    const line = ["exec", process.execPath, join(root, "src/cli/main.ts"), ...args].join(" ");
    this.#child = spawn(
      "script",
      ["-qefc", `stty cols ${cols} rows ${rows}; ${line}`, "/dev/null"],
      {
        cwd,
        // A spinner is for people: where CI is set there are none.
        env: { ...person.environment, TERM: "xterm-256color", CI: undefined, ...env },
        stdio: ["pipe", "pipe", "inherit"],
      },
    );
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.written += text;
      this.#terminal.write(text);
    });
    this.ended = new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("close", resolve);
    });
  }

  type(text: string): void {
    this.#child.stdin?.write(text);
  }

  async seen(): Promise<string> {
    await new Promise<void>((resolve) => this.#terminal.write("", resolve));
    const { active } = this.#terminal.buffer;
    const lines = Array.from({ length: rows }, (_, at) =>
      active.getLine(at)?.translateToString(true),
    );
    return lines.join("\n").trimEnd();
  }

  end(): void {
    this.#child.kill("SIGKILL");
    this.#terminal.dispose();
  }
}

const showCursor = "\u001b[?25h";
const hideCursor = "\u001b[?25l";

describe("on a terminal", () => {
  let server: SharedServer;
  let person: Person;
  beforeAll(async () => {
    server = await useSharedServer();
    person = new Person(server);
  });
  afterAll(async () => {
    person[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
  });

  const repo = (name: string, setup: string[]) => {
    const cwd = person.repo(name, `https://example.com/team/${name}.git`);
    person.write(cwd, ".berth/sandbox.json", JSON.stringify({ setup }));
    return cwd;
  };

  it("[CL27] one line tells what is waited for, and nothing of it stays when it is over", async () => {
    const cwd = repo("progress", ["sleep 2"]);
    const screen = new Screen(person, ["start", "--wait"], cwd);
    try {
      await until("the set-up is told", async () =>
        /^\S set-up 1 of 1: sleep 2$/.test(await screen.seen()),
      );
      expect(screen.written).toContain(hideCursor);
      expect(await screen.ended).toBe(0);
      expect(await screen.seen()).toMatch(/^sandbox \w{24} is running \(made\)$/);
      expectCursor(screen);
    } finally {
      screen.end();
    }
  });

  it("[CL27] Ctrl-C ends it at once with 130, and gives the cursor back", async () => {
    const cwd = repo("interrupted", ["sleep 50"]);
    const screen = new Screen(person, ["start", "--wait"], cwd);
    try {
      await until("the set-up is told", async () => (await screen.seen()).includes("sleep 50"));
      screen.type("\u0003");
      expect(await screen.ended).toBe(130);
      expect(await screen.seen()).not.toContain("sleep 50");
      expectCursor(screen);
    } finally {
      screen.end();
    }
  });

  it("[CL27] a failure has a red word, unless NO_COLOR asks for none", async () => {
    const words = "error: unknown command 'nothing'\nhint: berth --help says how it is called.";
    const coloured = new Screen(person, ["nothing"], person.home);
    const plain = new Screen(person, ["nothing"], person.home, { NO_COLOR: "1" });
    try {
      expect([await coloured.ended, await plain.ended]).toEqual([1, 1]);
      expect([await coloured.seen(), await plain.seen()]).toEqual([words, words]);
      expect(coloured.written).toContain("\u001b[31merror:\u001b[39m ");
      expect(plain.written).not.toContain("\u001b");
    } finally {
      coloured.end();
      plain.end();
    }
  });

  it("[CL27] a key is typed unseen, and Ctrl-C leaves the terminal as it was", async () => {
    const screen = new Screen(person, ["login", "--url", server.url], person.home);
    const again = new Screen(person, ["login", "--url", server.url], person.home);
    try {
      await until(
        "it asks",
        () => screen.written.includes("key: ") && again.written.includes("key: "),
      );
      screen.type(`wrong\u0015${server.key}x\u007f\r`);
      expect(await screen.ended).toBe(0);
      expect(await screen.seen()).toContain(`logged in to ${server.url}; kept in `);
      expect(screen.written).not.toContain(server.key.slice(0, 8));
      again.type("wrong\u0003");
      expect(await again.ended).toBe(130);
      expect(await again.seen()).toBe("key: \nerror: nothing was typed");
    } finally {
      screen.end();
      again.end();
    }
  });
});

function expectCursor({ written }: Screen): void {
  expect(written.lastIndexOf(showCursor)).toBeGreaterThan(written.lastIndexOf(hideCursor));
}
