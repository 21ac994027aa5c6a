import { describe, expect, test } from "vitest";
import { Agent, isRoot, kinds } from "../agent.ts";

describe.each(kinds)("where an exec runs, process trees in a %s", (tree) => {
  const ownEnv = { SECRET_OF_AGENT: "hidden", PATH: "/nowhere" };
  const env = { GIVEN: "at create", BUN_OPTIONS: "--data" };
  const agent = Agent.forBlock({ tree, ownEnv, env });

  test("[L1] no state of a command remains: folder, variables, functions, umask", async () => {
    const first = await agent.sh("cd /; export STAYS=1; f() { :; }; umask 000; pwd; echo $STAYS");
    expect(first.stdout).toBe("/\n1\n");
    const second = await agent.sh("pwd; echo [$STAYS]; command -v f; umask");
    expect(second.stdout).toMatch(new RegExp(`^${agent.workspace}\n\\[\\]\n0\\d\\d\\d\n$`));
    expect(second.stdout).not.toContain("0000");
  });

  test("[L4] the folder and variables of one call do not affect the next", async () => {
    await agent.sh("mkdir -p sub/dir");
    const call = { cwd: "sub/dir", env: { OF_CALL: "x" } };
    expect((await agent.sh("pwd; echo $OF_CALL", call)).stdout).toBe(
      `${agent.workspace}/sub/dir\nx\n`,
    );
    expect((await agent.sh("pwd; echo [$OF_CALL]")).stdout).toBe(`${agent.workspace}\n[]\n`);
    expect((await agent.sh("pwd", { cwd: "/usr" })).stdout).toBe("/usr\n");
  });

  test("[L4] a folder that is missing, is a file or cannot be entered is refused by name, and nothing runs", async () => {
    await agent.sh("touch file");
    const missing = await agent.refused({ command: "touch /tmp/x", cwd: "not/there" });
    expect(missing).toMatchObject({ status: 400, error: { code: "bad_cwd", field: "cwd" } });
    expect(missing.error.message).toContain(`${agent.workspace}/not/there does not exist`);
    const file = await agent.refused({ argv: ["touch", `${agent.workspace}/ran`], cwd: "file" });
    expect(file).toMatchObject({ status: 400, error: { code: "bad_cwd" } });
    expect((await agent.sh("ls")).stdout).not.toContain("ran");
  });

  test.runIf(isRoot)("[L4] a folder that only the agent could enter is refused", async () => {
    const refused = await agent.refused({ command: "pwd", cwd: "/root" });
    expect(refused).toMatchObject({ status: 400, error: { code: "bad_cwd" } });
    expect(refused.error.message).toContain("cannot be entered");
  });

  test("[X9] the environment is the fixed one, then that of create, then that of the call, and nothing of the agent's own", async () => {
    const ofCall = { OWN: "line\nbreak", HOME: "/else" };
    const { stdout } = await agent.exec({ argv: ["env", "-0"], env: ofCall });
    const variables = stdout.split("\0").slice(0, -1);
    const pairs = variables.map((variable) => variable.split(/=(.*)/s).slice(0, 2));
    expect(Object.fromEntries(pairs)).toEqual({
      PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      HOME: "/else",
      USER: "berth",
      LANG: "C.UTF-8",
      GIVEN: "at create",
      BUN_OPTIONS: "--data",
      BERTH_TEST_MARK: agent.mark,
      OWN: "line\nbreak",
    });
  });

  test.runIf(isRoot)(
    "[X10] commands run as a user without groups, capabilities or a way to gain any",
    async () => {
      const { stdout } = await agent.sh(
        "id -u; id -G; grep -E '^(Groups|Cap(Prm|Eff|Amb)|NoNewPrivs):' /proc/self/status",
      );
      expect(stdout.replaceAll(/[ \t]+/g, " ")).toBe(
        [
          ...["10001", "10001", "Groups: ", "CapPrm: 0000000000000000", "CapEff: 0000000000000000"],
          ...["CapAmb: 0000000000000000", "NoNewPrivs: 1", ""],
        ].join("\n"),
      );
    },
  );
});
