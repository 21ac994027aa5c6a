import { spawn } from "node:child_process";
import { join } from "node:path";
import { Terminal } from "@xterm/headless";
import { expect, it } from "vitest";
import { root } from "../../../../container/launch/paths.js";
import { until } from "../../../until.ts";
import { type CliUser, useCliUser } from "../cli-user.ts";

const cols = 80;
const rows = 24;

/** A real terminal by `script`, and what a user sees on it. */
class Screen implements Disposable {
  readonly #terminal = new Terminal({ cols, rows, allowProposedApi: true });
  readonly #child: ReturnType<typeof spawn>;
  readonly ended: Promise<number | null>;
  /** Everything that was written. */
  written = "";

  constructor(user: CliUser, args: string[], cwd: string, env: Record<string, string> = {}) {
    const line = ["exec", process.execPath, join(root, "src/cli/main.ts"), ...args].join(" ");
    this.#child = spawn(
      "script",
      ["-qefc", `stty cols ${cols} rows ${rows}; ${line}`, "/dev/null"],
      {
        cwd,
        // With CI set there is no spinner.
        env: { ...user.environment, TERM: "xterm-256color", CI: undefined, ...env },
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
    const lines = Array.from({ length: rows }, (_, row) =>
      active.getLine(row)?.translateToString(true),
    );
    return lines.join("\n").trimEnd();
  }

  [Symbol.dispose](): void {
    this.#child.kill("SIGKILL");
    this.#terminal.dispose();
  }
}

const showCursor = "\u001b[?25h";
const hideCursor = "\u001b[?25l";

const { server, user } = await useCliUser();

const repo = (name: string, setup: string[]) => {
  const cwd = user.repo(name, `https://example.com/team/${name}.git`);
  user.write(cwd, ".berth/sandbox.json", JSON.stringify({ setup }));
  return cwd;
};

it("[CL27] one line shows what the command waits for, and disappears at the end", async () => {
  const cwd = repo("progress", ["sleep 2"]);
  using screen = new Screen(user, ["start", "--wait"], cwd);
  await until("the set-up is shown", async () =>
    /^\S Set-up 1 of 1: sleep 2$/.test(await screen.seen()),
  );
  expect(screen.written).toContain(hideCursor);
  expect(await screen.ended).toBe(0);
  expect(await screen.seen()).toMatch(/^Sandbox \w{24} is running \(created\)\.$/);
  expectCursor(screen);
});

it("[CL27] Ctrl-C ends the command at once with 130 and restores the cursor", async () => {
  const cwd = repo("interrupted", ["sleep 50"]);
  using screen = new Screen(user, ["start", "--wait"], cwd);
  await until("the set-up is shown", async () => (await screen.seen()).includes("sleep 50"));
  screen.type("\u0003");
  expect(await screen.ended).toBe(130);
  expect(await screen.seen()).not.toContain("sleep 50");
  expectCursor(screen);
});

it("[CL27] `error:` is red, unless NO_COLOR is set", async () => {
  const message = "error: Unknown command 'nothing'.\nhint: Run `berth --help` for usage.";
  using coloured = new Screen(user, ["nothing"], user.home);
  using plain = new Screen(user, ["nothing"], user.home, { NO_COLOR: "1" });
  expect([await coloured.ended, await plain.ended]).toEqual([1, 1]);
  expect([await coloured.seen(), await plain.seen()]).toEqual([message, message]);
  expect(coloured.written).toContain("\u001b[31merror:\u001b[39m ");
  expect(plain.written).not.toContain("\u001b");
});

it("[CL27] a key is typed unseen, and Ctrl-C restores the terminal", async () => {
  using screen = new Screen(user, ["login", "--url", server.url], user.home);
  using second = new Screen(user, ["login", "--url", server.url], user.home);
  await until(
    "it asks",
    () => screen.written.includes("Key: ") && second.written.includes("Key: "),
  );
  screen.type(`wrong\u0015${server.key}x\u007f\r`);
  expect(await screen.ended).toBe(0);
  expect(await screen.seen()).toContain(`Logged in to ${server.url}; stored in `);
  expect(screen.written).not.toContain(server.key.slice(0, 8));
  second.type("wrong\u0003");
  expect(await second.ended).toBe(130);
  expect(await second.seen()).toBe("Key: \nerror: No key was typed.");
});

function expectCursor({ written }: Screen): void {
  expect(written.lastIndexOf(showCursor)).toBeGreaterThan(written.lastIndexOf(hideCursor));
}
