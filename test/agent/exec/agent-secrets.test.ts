import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { singleThreadedBun } from "../../../container/engine/jail/bun-options.ts";
import { Agent, binary, isRoot, kinds } from "../agent.ts";

const plainUser = 12_345;

describe("what the agent keeps to itself", () => {
  /** Reports on stderr that it ran and ends the agent, wherever a runtime preloads it. */
  const evil = 'console.error("EVIL"); process.exit(66);';
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "berth-evil-"));
    chmodSync(folder, 0o755);
    writeFileSync(join(folder, "evil.js"), evil);
    writeFileSync(join(folder, "bunfig.toml"), `preload = ["${folder}/evil.js"]\n`);
    writeFileSync(join(folder, ".env"), `BUN_OPTIONS=--preload=${folder}/evil.js\nEVIL=yes\n`);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test.runIf(isRoot).each(kinds.includes("cgroup") ? [10_001, plainUser] : [])(
    "[X21] a command cannot read the agent's environment, memory or descriptors (agent's own user or not: %i)",
    async (uid) => {
      await using agent = await Agent.start(
        uid === plainUser ? { ownUid: uid, tree: "subreaper" } : {},
      );
      expect((await agent.sh("id -u")).stdout).toBe(`${uid}\n`);
      const seen = await agent.sh(`cat /proc/${agent.pid}/comm; id -u`);
      expect(seen.stdout).toContain("berth-agent");
      for (const what of ["environ", "mem", "maps", "fd/", "cwd/", "stack"]) {
        const read = await agent.sh(
          `ls /proc/${agent.pid}/${what} > /dev/null && head -c 1 /proc/${agent.pid}/${what}`,
        );
        expect(read.exitCode, what).not.toBe(0);
        expect(read.stderr, what).toMatch(/[Pp]ermission denied|not permitted/);
      }
    },
  );

  test.each(kinds)(
    "[X22] a user's bunfig.toml and .env do not reach the agent or its subreapers (%s)",
    async (tree) => {
      await using agent = await Agent.start({ tree, ownCwd: folder });
      const env = { BUN_OPTIONS: `--preload=${folder}/evil.js`, BUN_BE_BUN: "1" };
      const result = await agent.sh("echo [$EVIL] $BUN_OPTIONS $BUN_BE_BUN; ls -a", {
        cwd: folder,
        env,
      });
      expect(result.stdout).toMatch(new RegExp(`^\\[\\] ${env.BUN_OPTIONS} 1\n.*bunfig.toml`, "s"));
      expect(agent.log).toBe("");
    },
  );

  test("[X22] the check works: BUN_OPTIONS in the agent's own environment does preload", async () => {
    const ownEnv = { BUN_OPTIONS: `--preload=${folder}/evil.js` };
    await expect(Agent.start({ ownEnv })).rejects.toThrow(/EVIL/);
  });

  test("[X22] the entry of a container passes the agent its boot document and only its own variables", async () => {
    const entry = join(folder, "entry.sh");
    copyFileSync("container/entry.sh", entry);
    symlinkSync(binary, join(folder, "berth-agent"));
    await using agent = await Agent.start({
      program: entry,
      viaEntry: true,
      ownEnv: { BUN_OPTIONS: `--preload=${folder}/evil.js`, OTHER: "x", PATH: "/usr/bin:/bin" },
      env: { BUN_OPTIONS: "for commands", LINES: "a\nb 'c' \"d\" $e \\f" },
    });
    const { stdout } = await agent.sh(
      `echo "$BUN_OPTIONS"; printf '%s\\n' "$LINES"; echo [$OTHER][$BERTH_BOOT]`,
    );
    expect(stdout).toBe("for commands\na\nb 'c' \"d\" $e \\f\n[][]\n");
    expect(agent.environment()).toBe(
      Object.entries(singleThreadedBun)
        .map((pair) => `${pair.join("=")}\0`)
        .join(""),
    );
    await agent.stop();
    // It empties only the folders of the container that it starts.
    expect(existsSync(entry)).toBe(true);
    expect(readdirSync("/run").filter((name) => name.startsWith("berth-incarnation-"))).toEqual([]);
  });

  test("[X22] no command can reach the secret: neither in its environment nor in the arguments of any process", async () => {
    await using agent = await Agent.start();
    const { stdout } = await agent.sh("env; cat /proc/[0-9]*/cmdline | tr '\\0' ' '");
    expect(stdout).toContain("berth-agent serve");
    expect(stdout).not.toContain(agent.secret);
  });

  test("[X22] a boot document that is not JSON is refused without quoting it", async () => {
    const failed = await Agent.start({ document: '{"secret": "leaks' }).catch(String);
    expect(failed).toContain("the boot document on descriptor 3 is not JSON");
    expect(failed).not.toContain("leaks");
  });
});
