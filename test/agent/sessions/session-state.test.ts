import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { Agent, kinds } from "../agent.ts";
import { Sessions } from "./sessions.ts";

describe.each(kinds)("what a session remembers, process trees in a %s", (tree) => {
  const agent = Agent.forBlock({ tree, env: { OF_CREATE: "sandbox" } });
  const sessions = new Sessions(agent);
  let id: string;
  beforeEach(async () => {
    id = await sessions.make();
  });

  const sh = (command: string) => sessions.exec(id, command);

  test("[L2] the folder, variables, functions, aliases, options and umask remain for the next command", async () => {
    await sh(
      "mkdir -p a/b; cd a/b; plain=1; export outer=2; list=(x 'y z'); declare -A map=([k]=v)",
    );
    await sh(
      "f() { echo \"f $1\"; }; alias ll='echo aliased'; shopt -s nullglob; umask 027; set -f",
    );
    expect((await sh("pwd; echo $plain; sh -c 'echo $outer'")).stdout).toBe(
      `${agent.workspace}/a/b\n1\n2\n`,
    );
    expect((await sh(`printf '<%s>' "\${list[@]}" "\${map[k]}"`)).stdout).toBe("<x><y z><v>");
    expect((await sh("f one; ll two; shopt -q nullglob && umask; echo *")).stdout).toBe(
      "f one\naliased two\n0027\n*\n",
    );
    expect(await sessions.view(id)).toMatchObject({ cwd: `${agent.workspace}/a/b` });
  });

  test("[L2] what a sourced file defines remains", async () => {
    await agent.sh("printf 'sourced=yes\\ng() { echo \"g $sourced\"; }\\n' > lib.sh");
    await sh(". ./lib.sh");
    expect((await sh("g")).stdout).toBe("g yes\n");
  });

  test("[L2] the exit code of a command is $? of the next one", async () => {
    for (const status of [0, 1, 2, 42, 127, 255]) {
      expect((await sh(`(exit ${status})`)).exitCode).toBe(status);
      expect((await sh("echo $?")).stdout).toBe(`${status}\n`);
    }
  });

  test("[B1] a session starts in its folder with its environment, and both remain", async () => {
    mkdirSync(join(agent.workspace, "in"), { recursive: true });
    id = await sessions.make({ cwd: "in", env: { OWN: "é '" } });
    expect((await sh('pwd; echo "$OWN $OF_CREATE $HOME"; env | grep -c OWN')).stdout).toBe(
      `${agent.workspace}/in\né ' sandbox ${agent.workspace}\n1\n`,
    );
  });

  test("[B1] two sessions share nothing, and neither does exec", async () => {
    const other = await sessions.make();
    await sh("only=mine; cd /");
    expect((await sessions.exec(other, 'echo "<$only>"; pwd')).stdout).toBe(
      `<>\n${agent.workspace}\n`,
    );
    expect((await agent.sh('echo "<$only>"; pwd')).stdout).toBe(`<>\n${agent.workspace}\n`);
  });
});
