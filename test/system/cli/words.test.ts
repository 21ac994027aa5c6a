import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { root } from "../../../container/launch/paths.js";
import { commands } from "../../../src/cli/commands.ts";
import { Person } from "./cli-user.ts";

const nobody = "http://127.0.0.1:1";

describe("what the command says", () => {
  let person: Person;
  beforeAll(() => {
    person = new Person();
  });
  afterAll(() => person[Symbol.dispose]());

  it("[CL1] its help fits a screen of 24 lines and 80 columns, and names every command", async () => {
    const asked = await person.berth(["--help"]);
    expect(asked).toMatchObject({ code: 0, stderr: "" });
    const lines = asked.stdout.trimEnd().split("\n");
    // The line of the shell's next prompt is on the screen too.
    expect(lines.length).toBeLessThanOrEqual(23);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
    expect(commands.length).toBeGreaterThan(10);
    for (const { name } of commands) expect(asked.stdout).toMatch(new RegExp(`^  ${name} `, "m"));
    for (const same of [[], ["help"]]) expect(await person.berth(same)).toEqual(asked);
    const start = await person.berth(["start", "--help"]);
    expect(await person.berth(["help", "start"])).toEqual(start);
  });

  it("[CL1] as this repository runs it, it says the same, and what Node makes of its sources is kept", async () => {
    const kept = join(root, "dist/compile-cache");
    const env = { ...person.environment, NODE_COMPILE_CACHE: "" };
    const args = [join(root, "src/cli/from-sources.ts"), "--help"];
    const said = execFileSync(process.execPath, args, { env, encoding: "utf8" });
    expect(said).toBe((await person.berth(["--help"])).stdout);
    expect(readdirSync(kept)).not.toEqual([]);
  });

  it.each(commands.map(({ name }) => [name]))("[CL1] `%s --help` has examples", async (name) => {
    const asked = await person.berth([name, "--help"]);
    expect(asked).toMatchObject({ code: 0, stderr: "" });
    expect(asked.stdout).toMatch(new RegExp(`^Usage: berth ${name} `));
    expect(asked.stdout).toMatch(/^Examples:\n {2}# .+\n {2}.*berth /m);
    for (const line of asked.stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
  });

  it("[CL1] what `--json` prints is said of each command as it is, and completion's help is like the others", async () => {
    const json = async (...names: string[]) => {
      const { stdout } = await person.berth([...names, "--help"]);
      return /^ {2}--json +((?:.+\n {10,})*.+)$/m.exec(stdout)?.[1]?.replace(/\s+/g, " ");
    };
    expect(await json("list")).toBe("stdout is exactly one JSON document");
    expect(await json("logs")).toBe("stdout is JSON documents, one a line");
    expect(await json("lock")).toMatch(/^for `status` and `break`/);
    const { stdout } = await person.berth(["completion", "--help"]);
    expect(stdout).toMatch(/^ {2}-h, --help +say this$/m);
  });

  it("[CL2] a failure is one `error:` line and a `hint:` line on stderr, and exit code 1", async () => {
    const unknown = await person.berth(["nothing"]);
    expect(unknown).toEqual({
      ...{ code: 1, signal: null, stdout: "" },
      stderr: "error: unknown command 'nothing'\nhint: berth --help says how it is called.\n",
    });
    const close = await person.berth(["sotp"]);
    expect(close.stderr).toBe("error: unknown command 'sotp'\nhint: Did you mean stop?\n");
    for (const args of [
      ["help", "sotp"],
      ["sotp", "--help"],
    ]) {
      expect(await person.berth(args)).toEqual(close);
    }
    const option = await person.berth(["start", "--nothing"]);
    expect(option).toEqual({
      ...{ code: 1, signal: null, stdout: "" },
      stderr:
        "error: unknown option '--nothing'\nhint: berth start --help says how it is called.\n",
    });
    const value = await person.berth(["start", "--on-existing", "keep"]);
    expect(value).toMatchObject({
      ...{ code: 1, stdout: "" },
      stderr: expect.stringContaining(
        "error: --on-existing must be one of reuse, replace, error, not 'keep'\n",
      ),
    });
    const pair = await person.berth(["list", "--metadata", "team"]);
    expect(pair).toMatchObject({
      ...{ code: 1, stdout: "" },
      stderr: "error: --metadata must be key=value, not 'team'\n",
    });
  });

  it("[CL2] without a server it says where it looked and what to do", async () => {
    const ran = await person.berth(["list"]);
    expect(ran).toEqual({
      ...{ code: 1, signal: null, stdout: "" },
      stderr:
        "error: no server is known: neither BERTH_KEY, nor a login, nor a server started here\n" +
        "hint: Run `berth login`, or set BERTH_URL and BERTH_KEY.\n",
    });
  });

  it("[CL2] a server that cannot be reached is named", async () => {
    const ran = await person.berth(["list"], { env: { BERTH_URL: nobody, BERTH_KEY: "none" } });
    expect(ran).toEqual({
      ...{ code: 1, signal: null, stdout: "" },
      stderr: expect.stringMatching(
        /^error: http:\/\/127\.0\.0\.1:1 could not be reached.*\nhint: Try again; .*\n$/,
      ),
    });
  });

  it("[CL2] what this machine refuses is told as that, with the remedy", async () => {
    const repo = person.repo("refused");
    person.write(repo, ".git/berth", "in the way");
    const ran = await person.berth(["start"], {
      ...{ cwd: repo, env: { BERTH_URL: nobody, BERTH_KEY: "none" } },
    });
    expect(ran).toEqual({
      ...{ code: 1, signal: null, stdout: "" },
      stderr: expect.stringMatching(/^error: E[A-Z]+: .*\nhint: .* must be writable.*\n$/),
    });
  });

  it("[CL2] outside of a checkout the hint names only what the command has", async () => {
    const env = { BERTH_URL: nobody, BERTH_KEY: "none" };
    for (const name of ["start", "push", "reset"]) {
      const ran = await person.berth([name], { env });
      expect(ran.stderr).toMatch(/hint: Change into one, or run `git init`\.\n$/);
    }
    const ran = await person.berth(["ps"], { env });
    expect(ran.stderr).toMatch(/hint: .* or name a sandbox by --id\.\n$/);
  });

  it("[CL2] a command of `berth plan` that there is not is told as that", async () => {
    const env = { BERTH_URL: nobody, BERTH_KEY: "none" };
    const ran = await person.berth(["plan", "comit", "release"], { env });
    expect(ran).toEqual({
      ...{ code: 1, signal: null, stdout: "" },
      stderr:
        "error: unknown command 'plan comit'\nhint: berth plan --help says how it is called.\n",
    });
  });

  it("[CL2] a checkout whose place cannot be told is refused with the reason", async () => {
    const repo = person.repo("two\nlines");
    const env = { BERTH_URL: nobody, BERTH_KEY: "none" };
    const ran = await person.berth(["start", "--json"], { cwd: repo, env });
    expect(JSON.parse(ran.stdout)).toMatchObject({
      error: { code: "no_checkout", message: expect.stringContaining("line break") },
    });
  });

  it("[CL24] a key that no header can carry is refused as that", async () => {
    const env = { BERTH_URL: nobody, BERTH_KEY: "two\nlines" };
    const ran = await person.berth(["list", "--json"], { env });
    expect(JSON.parse(ran.stdout)).toMatchObject({ error: { code: "bad_key" } });
    expect(ran.stdout).not.toContain("lines");
  });

  it("[CL3] with --json a failure is one JSON document on stdout, and nothing else is said", async () => {
    const env = { BERTH_URL: nobody, BERTH_KEY: "none" };
    const failures: [string[], string][] = [
      [["list"], "unavailable"],
      [["start", "--wiat"], "bad_usage"],
      [["nosuch"], "bad_usage"],
      [["stop", "nosuch"], "bad_usage"],
      [["start"], "no_checkout"],
    ];
    for (const [args, code] of failures) {
      const ran = await person.berth([...args, "--json"], { env });
      expect(ran).toMatchObject({ code: 1, stderr: "" });
      expect(ran.stdout.trimEnd().split("\n")).toHaveLength(1);
      expect(JSON.parse(ran.stdout)).toMatchObject({
        error: { code, message: expect.any(String), hint: expect.any(String) },
      });
    }
  });

  it("[CL3] what follows the command that is run is its own, `--json` too", async () => {
    const env = { BERTH_URL: nobody, BERTH_KEY: "none" };
    for (const args of [["exec", "--id", "k3v9q2m7x1c5b8n4tq0w8e2r", "npm", "test", "--json"]]) {
      const ran = await person.berth(args, { env });
      expect(ran).toMatchObject({ code: 1, stdout: "" });
      expect(ran.stderr).toMatch(/^error: .*\nhint: .*\n$/);
    }
  });

  it("[CL4] a pipe gets no colours, and a reader who goes away is no failure", async () => {
    const asked = await person.berth(["nosuch"], { env: { FORCE_COLOR: "1" } });
    expect(asked.stderr).not.toContain("\u001b");
    const { child, ended } = person.start(["--help"]);
    child.stdout?.destroy();
    expect(await ended).toMatchObject({ code: 0, stderr: "" });
  });

  it("[CL5] no option takes a key", () => {
    const flags = commands.flatMap(({ options = {} }) =>
      Object.values(options).map((option) => option.flags),
    );
    expect(flags.length).toBeGreaterThan(10);
    // These say where the key is, not what it is.
    for (const one of flags) expect(one).not.toMatch(/--(key|token|secret|password)\b(?!-stdin)/);
  });
});
