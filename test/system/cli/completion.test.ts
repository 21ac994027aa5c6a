import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { root } from "../../../container/launch/paths.js";
import { commandNames } from "../../../src/cli/commands.ts";
import { CliUser } from "./cli-user.ts";

const user = new CliUser();
afterAll(() => user[Symbol.dispose]());
const program = `#!/bin/sh\nexec "${process.execPath}" "${join(root, "src/cli/main.ts")}" "$@"\n`;
writeFileSync(join(user.home, "berth"), program, { mode: 0o755 });

/** The completions that bash offers after these words. */
const complete = (script: string, ...words: string[]) => {
  const line = words.map((word) => `'${word}'`).join(" ");
  const setup = `COMP_WORDS=(berth ${line}); COMP_CWORD=${words.length}; __berth_complete_or_file`;
  const print = `${setup} 2>/dev/null; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const args = ["--norc", "-c", `${script}\n${print}`];
  const env = { ...user.environment, PATH: `${user.home}:${user.environment.PATH}` };
  const options = { env, cwd: user.home, encoding: "utf8", timeout: 30_000 } as const;
  return execFileSync("bash", args, options).trim().split("\n");
};

it("[CL26] for bash offers commands, options and their values", async () => {
  const { code, stdout: script, stderr } = await user.berth(["completion", "bash"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const all = complete(script, "");
  expect(commandNames.length).toBeGreaterThan(10);
  for (const name of commandNames) expect(all).toContain(name);
  expect(complete(script, "st")).toEqual(["start", "status", "stop"]);
  expect(complete(script, "start", "--")).toEqual(
    expect.arrayContaining(["--wait", "--on-existing", "--config", "--json"]),
  );
  expect(complete(script, "start", "--on-existing", "")).toEqual(["reuse", "replace", "error"]);
  expect(complete(script, "plan", "c")).toEqual(["create", "commit"]);
});

it("[CL26] for bash offers file names where the command has no words, without bash-completion too", async () => {
  const { stdout: script } = await user.berth(["completion", "bash"]);
  user.write(user.home, "package one.json", "{}");
  expect(complete(script, "cp", "pack")).toEqual(["package one.json"]);
  expect(complete(script, "lock", "--", "pack")).toEqual(["package one.json"]);
  expect(complete(script, "start", "--config", "pack")).toEqual(["package one.json"]);
});

it("[CL26] prints a script for each supported shell and refuses others", async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const { code, stdout } = await user.berth(["completion", shell]);
    expect(code).toBe(0);
    expect(stdout).toContain("berth complete --");
  }
  const unsupported = await user.failure(["completion", "tcsh"]);
  expect(unsupported).toMatch(/^error: .*tcsh.*\nhint: /);
});
