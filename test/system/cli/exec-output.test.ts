/** Tests special runs: output that nobody reads, an ignored Ctrl-C, untracked folders, commits in the sandbox. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { root } from "../../../container/launch/paths.js";
import { until } from "../../until.ts";
import { expectNothingLeft, useCliUser } from "./cli-user.ts";

const { user, sandboxOf } = await useCliUser();
const repo = user.repo("app");
const sandbox = await sandboxOf(repo);

const here = (path: string) => join(repo, path);

/** Runs with the given stdout. */
function run(script: string, stdout: "pipe" | number) {
  const args = [join(root, "src/cli/main.ts"), "exec", "--", "sh", "-c", script];
  const options = { cwd: repo, env: user.environment };
  return spawn(process.execPath, args, { ...options, stdio: ["ignore", stdout, "pipe"] });
}

/** Pipes the output to a reader in a shell: what the reader printed, and the command's exit code. */
async function piped(reader: string, ...args: string[]) {
  const script = `{ "$@"; echo $? >&2; } | { ${reader}; }`;
  const berth = [process.execPath, join(root, "src/cli/main.ts"), ...args];
  const options = { cwd: repo, env: user.environment };
  return await promisify(execFile)("sh", ["-c", script, "sh", ...berth], options);
}

test("[LV21] a command whose reader closes the output is ended, its changes are fetched, and the exit code is 141", async () => {
  const child = run("echo > made; echo ready; trap '' PIPE; while :; do echo more; done", "pipe");
  const ended = once(child, "close");
  const [first] = await once(child.stdout ?? child, "data");
  expect(String(first)).toContain("ready");
  child.stdout?.destroy();
  expect(await ended).toEqual([141, null]);
  expect(existsSync(here("made"))).toBe(true);
  await expectNothingLeft(sandbox);
});

test("[LV8] a slow reader gets all output, to the last byte of the document", async () => {
  // Longer than the command waits for anything else that is still open.
  const slow = "dd bs=1 count=1 2>/dev/null; sleep 3; cat";
  const lines = Array.from({ length: 20_000 }, (_, n) => `${n + 1}\n`).join("");
  const plain = await piped(slow, "exec", "--", "seq", "1", "20000");
  expect(plain.stderr).toBe("0\n");
  expect(plain.stdout === lines, `${plain.stdout.length} of ${lines.length}`).toBe(true);
  const json = await piped(slow, "exec", "--json", "--", "seq", "1", "20000");
  expect(json.stderr).toBe("0\n");
  expect(JSON.parse(json.stdout)).toMatchObject({ exitCode: 0, stdout: lines });
});

test("[CL4] a reader that closes a long log early is not a failure", async () => {
  const { id } = await sandbox.processes.start({ argv: ["seq", "1", "100000"] });
  await sandbox.process(id).wait({ for: "exit", timeoutMs: 30_000 });
  expect(await piped("head -n 1", "logs", id)).toEqual({ stdout: "1\n", stderr: "0\n" });
  const json = await piped("head -n 1", "logs", id, "--json");
  expect(json.stderr).toBe("0\n");
  expect(JSON.parse(json.stdout)).toMatchObject({ type: "output", stream: "stdout" });
});

test("[LV21] output that cannot be written is an error, and the changes of the command are fetched", async () => {
  const full = openSync("/dev/full", "w");
  const child = run("echo > fetched; echo ready; sleep 600", full);
  closeSync(full);
  let output = "";
  child.stderr?.on("data", (more) => {
    output += more;
  });
  expect(await once(child, "close")).toEqual([125, null]);
  expect(output).toMatch(/^error: The output could not be written: .*\nhint: /m);
  expect(existsSync(here("fetched"))).toBe(true);
  await expectNothingLeft(sandbox);
});

test.each([
  ["[LV9] a run whose command has not started", ["exec", "--json", "--", "true"], "SIGINT", 130],
  ["[LV9] a run whose command has not started", ["exec", "--json", "--", "true"], "SIGTERM", 143],
  ["[CL3] a command without a run", ["push", "--json"], "SIGTERM", 143],
] as const)(
  "%s that is interrupted prints one document with --json",
  async (_, args, signal, code) => {
    await using _held = await sandbox.lease.hold({ holder: "somebody" });
    const { child, ended } = user.start([...args], { cwd: repo });
    await until("it waits", async () => (await sandbox.lease.get()).waiterCount === 1);
    child.kill(signal);
    const ran = await ended;
    expect(ran.code).toBe(code);
    expect(JSON.parse(ran.stdout)).toMatchObject({ error: { code: "interrupted", signal } });
    await until("its place is free", async () => (await sandbox.lease.get()).waiterCount === 0);
  },
);

test("[LV9] with --json there is one document even if stderr cannot be written", async () => {
  user.write(repo, ".berth/sandbox.json", JSON.stringify({ env: { A: "drifted" } }));
  const full = openSync("/dev/full", "w");
  const args = [join(root, "src/cli/main.ts"), "exec", "--json", "--", "echo", "out"];
  const options = { cwd: repo, env: user.environment };
  const child = spawn(process.execPath, args, { ...options, stdio: ["ignore", "pipe", full] });
  closeSync(full);
  let output = "";
  child.stdout?.on("data", (more) => {
    output += more;
  });
  expect(await once(child, "close")).toEqual([0, null]);
  expect(JSON.parse(output)).toMatchObject({ exitCode: 0, stdout: "out\n", configChanged: true });
  rmSync(here(".berth/sandbox.json"));
  await expectNothingLeft(sandbox);
});

test("[LV11] after Ctrl-C a command that continues is reported, a second one ends it, and its changes are fetched", async () => {
  const script = "trap '' INT TERM; echo > kept; echo ready; while :; do sleep 0.05; done";
  const args = ["exec", "--", "sh", "-c", script];
  const { child, printed, ended } = user.start(args, { cwd: repo });
  await until("it runs", () => printed.stdout.includes("ready"));
  child.kill("SIGINT");
  await until("it is reported", () => printed.stderr.includes("Press Ctrl-C again to kill it"));
  const [{ id = "" } = {}] = await sandbox.processes.list({ state: "running" });
  child.kill("SIGINT");
  expect(await ended).toMatchObject({ code: 130 });
  expect(await sandbox.process(id).get()).toMatchObject({ state: "exited" });
  expect(existsSync(here("kept"))).toBe(true);
  await expectNothingLeft(sandbox);
});

test("[LV10] a command runs in the caller's folder, even an empty or ignored one", async () => {
  user.write(repo, ".gitignore", "build/\n");
  for (const below of ["empty/of all", "build"]) {
    mkdirSync(here(below), { recursive: true });
    const args = ["exec", "--", "sh", "-c", "pwd; echo made > out"];
    const ran = await user.berth(args, { cwd: here(below) });
    expect(ran).toMatchObject({ code: 0, stdout: `/workspace/${below}\n` });
  }
  expect(readFileSync(here("empty/of all/out"), "utf8")).toBe("made\n");
  // Ignored files stay where they were created.
  expect(existsSync(here("build/out"))).toBe(false);
  await expectNothingLeft(sandbox);
});

test("[SY12] a command that removes the sandbox's `.git` is reported with a next step", async () => {
  const args = ["exec", "--", "sh", "-c", "echo made > lost; rm -rf .git"];
  const ran = await user.failure(args, { cwd: repo });
  expect(ran).toMatch(/^warning: .* has no `\.git\/berth` .*\nhint: .*berth cp/);
  expect((await user.berth(["cp", ":lost", "."], { cwd: repo })).code).toBe(0);
  expect(readFileSync(here("lost"), "utf8")).toBe("made\n");
  const next = await user.berth(["exec", "--", "git", "status", "--short"], { cwd: repo });
  expect(next).toMatchObject({ code: 0, stdout: expect.stringContaining("?? lost") });
});

test("[SY20] commits made in the sandbox are reported with how to see them, and their files are fetched", async () => {
  const commit = "git -c user.name=x -c user.email=x@example.com commit -q --allow-empty";
  const script = `echo > committed; git add -A; ${commit} -m one; ${commit} -m two`;
  const ran = await user.berth(["exec", "--", "sh", "-c", script], { cwd: repo });
  expect(ran).toMatchObject({ code: 0, stdout: "" });
  expect(ran.stderr).toContain("warning: The sandbox has 2 new commits. Files are fetched, ");
  expect(existsSync(here("committed"))).toBe(true);
  // The command of the hint.
  const [, line = ""] = /`berth (exec --id [^`]*)` shows them;/.exec(ran.stderr) ?? [];
  const log = await user.berth([...line.split(" "), "--format=%s"], { cwd: repo });
  expect(log).toMatchObject({ code: 0, stdout: expect.stringMatching(/^two\none\n/) });
  const head = ["exec", "--json", "--", "git", "rev-parse", "HEAD"];
  const next = JSON.parse((await user.berth(head, { cwd: repo })).stdout);
  expect(next).toMatchObject({ stdout: user.git(repo, "rev-parse", "HEAD") });
  expect(next.pull).not.toHaveProperty("newCommits");
  const away = ["exec", "--", "git", "checkout", "-q", "--orphan", "empty"];
  expect((await user.berth(away, { cwd: repo })).stderr).toBe(
    "warning: HEAD was moved in the sandbox. The next `berth exec` resets it.\n",
  );
});
