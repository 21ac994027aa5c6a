import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { root } from "../../../container/launch/paths.js";
import { commandNames, loadCommands } from "../../../src/cli/commands.ts";
import { CliUser } from "./cli-user.ts";

const unreachable = "http://127.0.0.1:1";
/** A server that cannot be reached. */
const env = { BERTH_URL: unreachable, BERTH_KEY: "none" };

const user = new CliUser();
afterAll(() => user[Symbol.dispose]());

it("[CL1] the help fits 30 lines of 80 columns and lists every command", async () => {
  const help = await user.berth(["--help"]);
  expect(help).toMatchObject({ code: 0, stderr: "" });
  const lines = help.stdout.trimEnd().split("\n");
  // The shell's next prompt takes a line too.
  expect(lines.length).toBeLessThanOrEqual(29);
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
  const commands = await loadCommands(undefined);
  expect(commands.length).toBeGreaterThan(10);
  for (const { name, group } of commands) {
    const listed = group === undefined ? `^  ${name} ` : `^  ${group} .*[ ]${name}(,|$)`;
    expect(help.stdout).toMatch(new RegExp(listed, "m"));
  }
  for (const same of [[], ["help"]]) expect(await user.berth(same)).toEqual(help);
  const start = await user.berth(["start", "--help"]);
  expect(await user.berth(["help", "start"])).toEqual(start);
});

it("[CL1] run from its sources it prints the same, and uses a compile cache", async () => {
  const cachePath = join(root, "dist/compile-cache");
  const env = { ...user.environment, NODE_COMPILE_CACHE: "" };
  const args = [join(root, "src/cli/from-sources.ts"), "--help"];
  const output = execFileSync(process.execPath, args, { env, encoding: "utf8" });
  expect(output).toBe((await user.berth(["--help"])).stdout);
  expect(readdirSync(cachePath)).not.toEqual([]);
});

it.each(commandNames)("[CL1] `%s --help` has examples", async (name) => {
  const help = await user.berth([name, "--help"]);
  expect(help).toMatchObject({ code: 0, stderr: "" });
  expect(help.stdout).toMatch(new RegExp(`^Usage: berth ${name} `));
  expect(help.stdout).toMatch(/^Examples:\n {2}# .+\n {2}.*berth /m);
  for (const line of help.stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
});

it("[CL1] the help of each command describes its `--json`, and completion has help like the others", async () => {
  const json = async (...names: string[]) => {
    const { stdout } = await user.berth([...names, "--help"]);
    return /^ {2}--json +((?:.+\n {10,})*.+)$/m.exec(stdout)?.[1]?.replace(/\s+/g, " ");
  };
  expect(await json("list")).toBe("Print exactly one JSON document on stdout");
  expect(await json("logs")).toBe("Print JSON documents on stdout, one per line");
  expect(await json("lock")).toMatch(/^For `status` and `break`/);
  const { stdout } = await user.berth(["completion", "--help"]);
  expect(stdout).toMatch(/^ {2}-h, --help +Show this help$/m);
});

const misspelt = "error: Unknown command 'sotp'.\nhint: Did you mean stop?\n";

it.each([
  [["nothing"], "error: Unknown command 'nothing'.\nhint: Run `berth --help` for usage.\n"],
  [["sotp"], misspelt],
  [["help", "sotp"], misspelt],
  [["sotp", "--help"], misspelt],
  [
    ["start", "--nothing"],
    "error: Unknown option '--nothing'.\nhint: Run `berth start --help` for usage.\n",
  ],
  [
    ["plan", "comit", "release"],
    "error: Unknown command 'plan comit'.\nhint: Run `berth plan --help` for usage.\n",
  ],
  [
    ["start", "--on-existing", "keep"],
    "error: `--on-existing` must be one of reuse, replace, error, not 'keep'.\n",
  ],
  [["list", "--metadata", "team"], "error: `--metadata` must be key=value, not 'team'.\n"],
])(
  "[CL2] wrong usage is one `error:` line, with a hint where there is one: %j",
  async (args, message) => {
    expect(await user.failure(args)).toBe(message);
  },
);

it("[CL2] without a server the error names the sources and the hint the next step", async () => {
  expect(await user.failure(["list"])).toBe(
    "error: No server is known: there is no BERTH_KEY, no login, and no server of this user runs here.\n" +
      "hint: Start one with `npm start` or `berth serve`, run `berth login`, or set BERTH_URL and BERTH_KEY.\n",
  );
});

it("[CL2] the error names a server that cannot be reached", async () => {
  expect(await user.failure(["list"], { env })).toMatch(
    /^error: http:\/\/127\.0\.0\.1:1 could not be reached.*\nhint: Is the server running\? .*\n$/,
  );
});

it("[CL2] a refusal of this machine is reported as one, with a next step", async () => {
  const repo = user.repo("refused");
  user.write(repo, ".git/berth", "in the way");
  const ran = await user.failure(["start"], { cwd: repo, env });
  expect(ran).toMatch(/^error: E[A-Z]+: .*\nhint: .* must be writable.*\n$/);
});

it("[CL2] outside of a checkout the hint names only options that the command has", async () => {
  for (const name of ["start", "push", "reset"]) {
    const ran = await user.berth([name], { env });
    expect(ran.stderr).toMatch(/hint: Change into a checkout, or run `git init`\.\n$/);
  }
  const ran = await user.berth(["ps"], { env });
  expect(ran.stderr).toMatch(/hint: .* or give a sandbox with `--id`\.\n$/);
});

it("[CL2] a checkout with a line break in its path is refused with the reason", async () => {
  const repo = user.repo("two\nlines");
  const ran = await user.berth(["start", "--json"], { cwd: repo, env });
  const error = { code: "no_checkout", message: expect.stringContaining("line break") };
  expect(JSON.parse(ran.stdout)).toMatchObject({ error });
});

it("[CL24] a key that no header can carry is refused", async () => {
  const env = { BERTH_URL: unreachable, BERTH_KEY: "two\nlines" };
  const ran = await user.berth(["list", "--json"], { env });
  expect(JSON.parse(ran.stdout)).toMatchObject({ error: { code: "bad_key" } });
  expect(ran.stdout).not.toContain("lines");
});

it("[CL3] with --json a failure is one JSON document on stdout, and stderr is empty", async () => {
  const failures: [string[], string][] = [
    [["list"], "unavailable"],
    [["start", "--wiat"], "bad_usage"],
    [["nosuch"], "bad_usage"],
    [["stop", "nosuch"], "bad_usage"],
    [["start"], "no_checkout"],
  ];
  for (const [args, code] of failures) {
    const ran = await user.berth([...args, "--json"], { env });
    expect(ran).toMatchObject({ code: 1, stderr: "" });
    expect(ran.stdout.trimEnd().split("\n")).toHaveLength(1);
    expect(JSON.parse(ran.stdout)).toMatchObject({
      error: { code, message: expect.any(String), hint: expect.any(String) },
    });
  }
});

it("[CL3] options after the command to run belong to that command, `--json` too", async () => {
  for (const args of [["exec", "--id", "k3v9q2m7x1c5b8n4tq0w8e2r", "npm", "test", "--json"]]) {
    const ran = await user.failure(args, { env });
    expect(ran).toMatch(/^error: .*\nhint: .*\n$/);
  }
});

it("[CL4] a pipe gets no colours, and a closed output is not a failure", async () => {
  const help = await user.berth(["nosuch"], { env: { FORCE_COLOR: "1" } });
  expect(help.stderr).not.toContain("\u001b");
  const { child, ended } = user.start(["--help"]);
  child.stdout?.destroy();
  expect(await ended).toMatchObject({ code: 0, stderr: "" });
});

it("[CL5] no option takes a key", async () => {
  const commands = await loadCommands(undefined);
  const flags = commands.flatMap(({ options = {} }) =>
    Object.values(options).map((option) => option.flags),
  );
  expect(flags.length).toBeGreaterThan(10);
  // These options say where the key is, not what it is.
  for (const flag of flags) expect(flag).not.toMatch(/--(key|token|secret|password)\b(?!-stdin)/);
});
