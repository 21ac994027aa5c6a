import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { root } from "../../../container/launch/paths.js";
import { commandNames } from "../../../src/cli/commands.ts";
import { CliUser } from "./cli-user.ts";

/** The part of the package bash-completion that our script uses. */
const bashCompletion = `
  _get_comp_words_by_ref() {
    words=("\${COMP_WORDS[@]}"); cword=$COMP_CWORD
    cur=\${words[cword]}; prev=\${words[cword - 1]}
  }
`;

const user = new CliUser();
afterAll(() => user[Symbol.dispose]());
const program = `#!/bin/sh\nexec "${process.execPath}" "${join(root, "src/cli/main.ts")}" "$@"\n`;
writeFileSync(join(user.home, "berth"), program, { mode: 0o755 });

/** The completions that bash offers after these words. */
const complete = (script: string, ...words: string[]) => {
  const line = words.map((word) => `'${word}'`).join(" ");
  const setup = `COMP_WORDS=(berth ${line}); COMP_CWORD=${words.length}; __berth_complete`;
  const print = `${setup} 2>/dev/null; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const args = ["--norc", "-c", `${bashCompletion}\n${script}\n${print}`];
  const env = { ...user.environment, PATH: `${user.home}:${user.environment.PATH}` };
  const options = { env, encoding: "utf8", timeout: 30_000 } as const;
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

it("[CL26] prints a script for each supported shell and refuses others", async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const { code, stdout } = await user.berth(["completion", shell]);
    expect(code).toBe(0);
    expect(stdout).toContain("berth complete --");
  }
  const unsupported = await user.failure(["completion", "tcsh"]);
  expect(unsupported).toMatch(/^error: .*tcsh.*\nhint: /);
});
