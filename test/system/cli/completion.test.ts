import { execFileSync } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { root } from "../../../container/launch/paths.js";
import { commands } from "../../../src/cli/commands.ts";
import { CliUser } from "./cli-user.ts";

/** The part of the package bash-completion that our script uses. */
const bashCompletion = `
  _get_comp_words_by_ref() {
    words=("\${COMP_WORDS[@]}"); cword=$COMP_CWORD
    cur=\${words[cword]}; prev=\${words[cword - 1]}
  }
`;

describe("completion", () => {
  let user: CliUser;
  beforeAll(() => {
    user = new CliUser();
    const path = join(user.home, "berth");
    writeFileSync(
      path,
      `#!/bin/sh\nexec "${process.execPath}" "${join(root, "src/cli/main.ts")}" "$@"\n`,
    );
    chmodSync(path, 0o755);
  });
  afterAll(() => user[Symbol.dispose]());

  /** The completions that bash offers after these words. */
  const complete = (script: string, ...words: string[]) => {
    const line = words.map((word) => `'${word}'`).join(" ");
    const setup = `COMP_WORDS=(berth ${line}); COMP_CWORD=${words.length}; __berth_complete`;
    const output = execFileSync(
      "bash",
      [
        "--norc",
        "-c",
        `${bashCompletion}\n${script}\n${setup} 2>/dev/null; printf '%s\\n' "\${COMPREPLY[@]}"`,
      ],
      {
        env: { ...user.environment, PATH: `${user.home}:${user.environment.PATH}` },
        encoding: "utf8",
        timeout: 30_000,
      },
    );
    return output.trim().split("\n");
  };

  it("[CL26] for bash offers commands, options and their values", async () => {
    const { code, stdout: script, stderr } = await user.berth(["completion", "bash"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const all = complete(script, "");
    expect(commands.length).toBeGreaterThan(10);
    for (const { name } of commands) expect(all).toContain(name);
    expect(complete(script, "st")).toEqual(["start", "stop"]);
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
    const unsupported = await user.berth(["completion", "tcsh"]);
    expect(unsupported).toMatchObject({ code: 1, stdout: "" });
    expect(unsupported.stderr).toMatch(/^error: .*tcsh.*\nhint: /);
  });
});
