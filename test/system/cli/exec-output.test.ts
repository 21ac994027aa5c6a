/**
 * Proves what becomes of output that nobody takes, or that is taken slowly, of a run that does not care for Ctrl-C, of one that is
 * started where git knows no folder, and of one that commits. Does not own what a run does otherwise (exec.test.ts).
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { root } from "../../../container/launch/paths.js";
import { connect, type SandboxHandle } from "../../../src/client/index.ts";
import { type SharedServer, useSharedServer } from "../shared-server.ts";
import { until } from "../until.ts";
import { Person } from "./cli-user.ts";

let server: SharedServer;
let person: Person;
let repo: string;
let sandbox: SandboxHandle;
beforeAll(async () => {
  server = await useSharedServer();
  person = new Person(server);
  repo = person.repo("app");
  const made = await person.json<{ sandbox: string }>(["exec", "--json", "--", "true"], {
    cwd: repo,
  });
  sandbox = connect(server).sandbox(made.sandbox);
});
afterAll(async () => {
  person[Symbol.dispose]();
  await server[Symbol.asyncDispose]();
});

const here = (path: string) => join(repo, path);

/** With an output of its own. */
function run(script: string, stdout: "pipe" | number) {
  const args = [join(root, "src/cli/main.ts"), "exec", "--", "sh", "-c", script];
  const options = { cwd: repo, env: person.environment };
  return spawn(process.execPath, args, { ...options, stdio: ["ignore", stdout, "pipe"] });
}

/** Through a pipe of a shell's to such a reader: what he printed, and the exit code of the command. */
async function piped(reader: string, ...args: string[]) {
  const script = `{ "$@"; echo $? >&2; } | { ${reader}; }`;
  const berth = [process.execPath, join(root, "src/cli/main.ts"), ...args];
  const options = { cwd: repo, env: person.environment };
  const { stdout, stderr } = await promisify(execFile)(
    "sh",
    ["-c", script, "sh", ...berth],
    options,
  );
  return { stdout, stderr };
}

async function nothingLeft(): Promise<void> {
  await until("the lease is free", async () => (await sandbox.lease()).state === "free");
  expect((await sandbox.processes({ state: "running" })).processes).toEqual([]);
}

test("[LV21] a command whose reader has gone is ended, what it changed comes back, and the exit code tells it", async () => {
  const child = run("echo > made; echo ready; trap '' PIPE; while :; do echo more; done", "pipe");
  const ended = once(child, "close");
  const [first] = await once(child.stdout ?? child, "data");
  expect(String(first)).toContain("ready");
  child.stdout?.destroy();
  expect(await ended).toEqual([141, null]);
  expect(existsSync(here("made"))).toBe(true);
  await nothingLeft();
});

test("[LV8] a reader who takes his time gets all of it, to the last byte of the document", async () => {
  // Longer than a command stays for anything else that it has left open.
  const slow = "dd bs=1 count=1 2>/dev/null; sleep 3; cat";
  const lines = Array.from({ length: 20_000 }, (_, n) => `${n + 1}\n`).join("");
  const plain = await piped(slow, "exec", "--", "seq", "1", "20000");
  expect(plain.stderr).toBe("0\n");
  expect(plain.stdout === lines, `${plain.stdout.length} of ${lines.length}`).toBe(true);
  const json = await piped(slow, "exec", "--json", "--", "seq", "1", "20000");
  expect(json.stderr).toBe("0\n");
  expect(JSON.parse(json.stdout)).toMatchObject({ exitCode: 0, stdout: lines });
});

test("[CL4] a reader of a long log who has seen enough is no failure", async () => {
  const { id } = await sandbox.startProcess({ argv: ["seq", "1", "100000"] });
  await sandbox.waitForProcess(id, { for: "exit", timeoutMs: 30_000 });
  expect(await piped("head -n 1", "logs", id)).toEqual({ stdout: "1\n", stderr: "0\n" });
  const json = await piped("head -n 1", "logs", id, "--json");
  expect(json.stderr).toBe("0\n");
  expect(JSON.parse(json.stdout)).toMatchObject({ type: "output", stream: "stdout" });
});

test("[LV21] output that cannot be written is an error of ours, and what the command changed comes back", async () => {
  const full = openSync("/dev/full", "w");
  const child = run("echo > fetched; echo ready; sleep 600", full);
  closeSync(full);
  let said = "";
  child.stderr?.on("data", (more) => {
    said += more;
  });
  expect(await once(child, "close")).toEqual([1, null]);
  expect(said).toMatch(/^error: the output could not be written: .*\nhint: /m);
  expect(existsSync(here("fetched"))).toBe(true);
  await nothingLeft();
});

test("[LV9] with --json one that is ended before the command began prints one document too", async () => {
  await using _held = await sandbox.hold({ holder: "somebody" });
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    const { child, ended } = person.start(["exec", "--json", "--", "true"], { cwd: repo });
    await until("it waits", async () => (await sandbox.lease()).waiterCount === 1);
    child.kill(signal);
    const ran = await ended;
    expect(ran.code).toBe(signal === "SIGINT" ? 130 : 143);
    expect(JSON.parse(ran.stdout)).toMatchObject({ error: { code: "interrupted", signal } });
    await until("its place is free", async () => (await sandbox.lease()).waiterCount === 0);
  }
});

test("[CL3] with --json a command that is ended by a signal prints one document too", async () => {
  await using _held = await sandbox.hold({ holder: "somebody" });
  const { child, ended } = person.start(["push", "--json"], { cwd: repo });
  await until("it waits", async () => (await sandbox.lease()).waiterCount === 1);
  child.kill("SIGTERM");
  const ran = await ended;
  expect(ran.code).toBe(143);
  expect(JSON.parse(ran.stdout)).toMatchObject({ error: { code: "interrupted" } });
});

test("[LV9] with --json there is one document also where talk cannot be written", async () => {
  person.write(repo, ".berth/sandbox.json", JSON.stringify({ env: { A: "drifted" } }));
  const full = openSync("/dev/full", "w");
  const args = [join(root, "src/cli/main.ts"), "exec", "--json", "--", "echo", "out"];
  const child = spawn(process.execPath, args, {
    ...{ cwd: repo, env: person.environment, stdio: ["ignore", "pipe", full] },
  });
  closeSync(full);
  let said = "";
  child.stdout?.on("data", (more) => {
    said += more;
  });
  expect(await once(child, "close")).toEqual([0, null]);
  expect(JSON.parse(said)).toMatchObject({ exitCode: 0, stdout: "out\n", configChanged: true });
  rmSync(here(".berth/sandbox.json"));
  await nothingLeft();
});

test("[LV11] a command that goes on after Ctrl-C is said to, with what ends it; what it changed comes back", async () => {
  const script = "trap '' INT TERM; echo > kept; echo ready; while :; do sleep 0.05; done";
  const { child, ended } = person.start(["exec", "--", "sh", "-c", script], { cwd: repo });
  await once(child.stdout ?? child, "data");
  child.kill("SIGINT");
  const [said] = await once(child.stderr ?? child, "data");
  expect(String(said)).toContain("Ctrl-C again ends it");
  child.kill("SIGINT");
  expect(await ended).toMatchObject({ code: 130 });
  expect(existsSync(here("kept"))).toBe(true);
  await nothingLeft();
});

test("[LV10] it runs in the folder where the caller stands, also in an empty one and in one that git ignores", async () => {
  person.write(repo, ".gitignore", "build/\n");
  for (const below of ["empty/of all", "build"]) {
    mkdirSync(here(below), { recursive: true });
    const ran = await person.berth(["exec", "--", "sh", "-c", "pwd; echo made > out"], {
      cwd: here(below),
    });
    expect(ran).toMatchObject({ code: 0, stdout: `/workspace/${below}\n` });
  }
  expect(readFileSync(here("empty/of all/out"), "utf8")).toBe("made\n");
  // What is ignored stays where it was made.
  expect(existsSync(here("build/out"))).toBe(false);
  await nothingLeft();
});

test("[SY12] a command that removes the sandbox's `.git` is told of as that, with what is left to do", async () => {
  const args = ["exec", "--", "sh", "-c", "echo made > lost; rm -rf .git"];
  const ran = await person.berth(args, { cwd: repo });
  expect(ran).toMatchObject({ code: 1, stdout: "" });
  expect(ran.stderr).toMatch(/^warning: .* removed `\.git` of the sandbox.*\nhint: .*berth cp/);
  expect((await person.berth(["cp", ":lost", "."], { cwd: repo })).code).toBe(0);
  expect(readFileSync(here("lost"), "utf8")).toBe("made\n");
  const next = await person.berth(["exec", "--", "git", "status", "--short"], { cwd: repo });
  expect(next).toMatchObject({ code: 0, stdout: expect.stringContaining("?? lost") });
});

test("[SY20] commits made in the sandbox are told, with where they are; their files come back", async () => {
  const commit = "git -c user.name=x -c user.email=x@example.com commit -q --allow-empty";
  const script = `echo > committed; git add -A; ${commit} -m one; ${commit} -m two`;
  const ran = await person.berth(["exec", "--", "sh", "-c", script], { cwd: repo });
  expect(ran).toMatchObject({ code: 0, stdout: "" });
  expect(ran.stderr).toContain("warning: the sandbox has 2 new commits: files come back, ");
  expect(existsSync(here("committed"))).toBe(true);
  // As the hint says.
  const [, line = ""] = /`berth (exec --id [^`]*)`\.\n$/.exec(ran.stderr) ?? [];
  const log = await person.berth([...line.split(" "), "--format=%s"], { cwd: repo });
  expect(log).toMatchObject({ code: 0, stdout: expect.stringMatching(/^two\none\n/) });
  const head = ["exec", "--json", "--", "git", "rev-parse", "HEAD"];
  const next = JSON.parse((await person.berth(head, { cwd: repo })).stdout);
  expect(next).toMatchObject({ stdout: person.git(repo, "rev-parse", "HEAD") });
  expect(next.pull).not.toHaveProperty("newCommits");
  const away = ["exec", "--", "git", "checkout", "-q", "--orphan", "empty"];
  expect((await person.berth(away, { cwd: repo })).stderr).toBe(
    "warning: HEAD was moved in the sandbox; the next `berth exec` puts it back\n",
  );
});
