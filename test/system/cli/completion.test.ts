import { execFileSync } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { root } from "../../../container/launch/paths.js";
import { commands } from "../../../src/cli/commands.ts";
import { Person } from "./cli-user.ts";

/** What the package bash-completion gives to each script, as far as ours asks for it. */
const bashCompletion = `
  _get_comp_words_by_ref() {
    words=("\${COMP_WORDS[@]}"); cword=$COMP_CWORD
    cur=\${words[cword]}; prev=\${words[cword - 1]}
  }
`;

describe("completion", () => {
  let person: Person;
  beforeAll(() => {
    person = new Person();
    const path = join(person.home, "berth");
    writeFileSync(
      path,
      `#!/bin/sh\nexec "${process.execPath}" "${join(root, "src/cli/main.ts")}" "$@"\n`,
    );
    chmodSync(path, 0o755);
  });
  afterAll(() => person[Symbol.dispose]());

  /** What bash would offer after these words. */
  const offered = (script: string, ...words: string[]) => {
    const line = words.map((word) => `'${word}'`).join(" ");
    const ask = `COMP_WORDS=(berth ${line}); COMP_CWORD=${words.length}; __berth_complete`;
    const said = execFileSync(
      "bash",
      [
        "--norc",
        "-c",
        `${bashCompletion}\n${script}\n${ask} 2>/dev/null; printf '%s\\n' "\${COMPREPLY[@]}"`,
      ],
      {
        env: { ...person.environment, PATH: `${person.home}:${person.environment.PATH}` },
        encoding: "utf8",
        timeout: 30_000,
      },
    );
    return said.trim().split("\n");
  };

  it("[CL26] of bash offers commands, their options and the values of these", async () => {
    const { code, stdout: script, stderr } = await person.berth(["completion", "bash"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const all = offered(script, "");
    expect(commands.length).toBeGreaterThan(10);
    for (const { name } of commands) expect(all).toContain(name);
    expect(offered(script, "st")).toEqual(["start", "stop"]);
    expect(offered(script, "start", "--")).toEqual(
      expect.arrayContaining(["--wait", "--on-existing", "--config", "--json"]),
    );
    expect(offered(script, "start", "--on-existing", "")).toEqual(["reuse", "replace", "error"]);
    expect(offered(script, "plan", "c")).toEqual(["create", "commit"]);
  });

  it("[CL26] has a script for each shell, and none for others", async () => {
    for (const shell of ["bash", "zsh", "fish"]) {
      const { code, stdout } = await person.berth(["completion", shell]);
      expect(code).toBe(0);
      expect(stdout).toContain("berth complete --");
    }
    const none = await person.berth(["completion", "tcsh"]);
    expect(none).toMatchObject({ code: 1, stdout: "" });
    expect(none.stderr).toMatch(/^error: .*tcsh.*\nhint: /);
  });
});
