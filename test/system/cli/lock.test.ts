/** Tests `berth lock`, with and without a terminal. See ../client/live-lease.test.ts for the lease itself. */
import { type StdioOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { root } from "../../../container/launch/paths.js";
import { connect } from "../../../src/client/index.ts";
import { until } from "../../until.ts";
import { CutProxy } from "../client/cut-proxy.ts";
import { alive, treeOf } from "../processes.ts";
import { useCliUser } from "./cli-user.ts";
import { hasTmux, TmuxScreen } from "./terminal/tmux-screen.ts";

const { server, user, sandboxOf } = await useCliUser();
const repo = user.repo("app");
const sandbox = await sandboxOf(repo);
const isFree = async () => (await sandbox.lease.get()).state === "free";

/** Runs in a session of its own, so without the terminal of the tests. */
function withoutTerminal(...args: string[]) {
  const all = [join(root, "src/cli/main.ts"), ...args];
  const options = { cwd: repo, env: user.environment, detached: true };
  const stdio: StdioOptions = ["ignore", "pipe", "inherit"];
  const child = spawn(process.execPath, all, { ...options, stdio });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

const berth = `${process.execPath} ${join(root, "src/cli/main.ts")}`;

test("[LV18] holds the lease while a local command runs, which may use it, and passes its exit code on", async () => {
  const script = `${berth} lock status; ${berth} exec -- echo inside; exit 6`;
  const ran = await user.berth(["lock", "--", "sh", "-c", script], { cwd: repo });
  expect(ran).toMatchObject({ code: 6, signal: null });
  expect(ran.stdout).toMatch(/^Held by .+ for \d+ s\ninside\n$/);
  await until("the lease is free", isFree);
  const missing = await user.berth(["lock", "--", "no-such-program"], { cwd: repo });
  expect(missing.code).toBe(127);
});

test("[LV18] break takes the lease from its holder and ends the holder's local command", async () => {
  const held = user.start(["lock", "--", "sleep", "600"], { cwd: repo });
  await until("the lease is held", async () => (await sandbox.lease.get()).state === "held");
  const withoutReason = await user.berth(["lock", "break"], { cwd: repo });
  expect(withoutReason).toMatchObject({ code: 1 });
  expect(withoutReason.stderr).toContain("--reason");
  const broken = await user.berth(["lock", "break", "--reason", "a test"], { cwd: repo });
  expect(broken.stdout).toMatch(/^The lease was taken from /);
  const ended = await held.ended;
  expect(ended.code).toBe(125);
  expect(ended.stderr).toContain(
    `error: The lease has ended: broken by ${server.tenant}: a test.\nhint: `,
  );
  expect(await user.json(["lock", "status"], { cwd: repo })).toMatchObject({ state: "free" });
});

test("[LV18] push and cp inside of it use its lease, and pending set-up commands run", async () => {
  const cwd = user.repo("inside", "https://example.com/team/inside.git");
  user.write(cwd, ".berth/sandbox.json", JSON.stringify({ setup: ["echo > /tmp/is-set-up"] }));
  // Only created: the first command that needs it runs the set-up.
  const made = await user.json<{ sandbox: { id: string } }>(["start"], { cwd });
  const steps = ["push", "cp README.md :/tmp/copied", "exec -- ls /tmp/is-set-up /tmp/copied"];
  const script = steps.map((step) => `${berth} ${step}`).join(" && ");
  const args = ["lock", "--id", made.sandbox.id, "--", "sh", "-c", script];
  const ran = await user.berth(args, { cwd });
  expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining("/tmp/is-set-up\n") });
});

test("[LV24] concurrent commands inside of it run one after the other", async () => {
  const trace = join(user.home, "turns-trace");
  const runCommand = (n: number) =>
    `${berth} exec -- sh -c 'echo ${n} > mine; sleep 0.3; cat mine'`;
  const script = `${[1, 2, 3].map((n) => `${runCommand(n)} & `).join("")} wait`;
  const env = { BERTH_TRACE: trace };
  const ran = await user.berth(["lock", "--", "sh", "-c", script], { cwd: repo, env });
  expect(ran.code).toBe(0);
  expect(ran.stdout.trim().split("\n").sort()).toEqual(["1", "2", "3"]);
  const steps = readFileSync(trace, "utf8").trim().split("\n");
  const lines = steps.map((line) => JSON.parse(line) as { pid: number; step: string });
  const held = lines.filter(({ step }) => step !== "waiting");
  const allSteps = ["granted", "sync", "run", "ran", "pull", "release"];
  expect(held.map(({ step }) => step)).toEqual([...allSteps, ...allSteps, ...allSteps]);
  for (const [index, { pid }] of held.entries()) {
    expect(pid).toBe(held[index - (index % allSteps.length)]?.pid);
  }
});

test("[LV24] a killed command gives up its turn; a waiting one sees the holder and waits no longer than --wait", async () => {
  const script = [
    `${berth} exec -- sh -c 'echo ready; trap "" TERM; while :; do date > alive; done' & first=$!`,
    `until [ -e ${user.home}/first ]; do sleep 0.05; done`,
    `${berth} exec --wait 1 -- true; echo "code $?"`,
    `${berth} exec -- sh -c 'rm -f alive; sleep 0.3; test -e alive || echo mine' & next=$!`,
    `until [ -e ${user.home}/next ]; do sleep 0.05; done`,
    "kill -9 $first; wait $next",
  ];
  const args = ["lock", "--", "bash", "-c", script.join("\n")];
  const { printed, ended } = user.start(args, { cwd: repo });
  await until("the first one runs", () => printed.stdout.includes("ready"));
  writeFileSync(join(user.home, "first"), "");
  await until("one has stopped waiting", () => printed.stdout.includes("code 1"));
  expect(printed.stderr).toMatch(
    /^Waiting for \S+ \(\d+\) to finish\nerror: .*\nhint: Wait longer with `--wait`/,
  );
  printed.stderr = "";
  await until("the next one waits", () => printed.stderr.includes("to finish\n"));
  expect(printed.stdout).not.toContain("mine");
  writeFileSync(join(user.home, "next"), "");
  const ran = await ended;
  expect(ran).toMatchObject({ code: 0, stdout: expect.stringMatching(/mine\n$/) });
});

test("[LV24] a nested lock keeps its turn for the commands inside of it", async () => {
  const inner = `${berth} lock -- sh -c "${berth} exec -- echo inner"`;
  const script = `${inner} & ${inner} & wait; ${berth} exec -- echo outer`;
  const ran = await user.berth(["lock", "--", "sh", "-c", script], { cwd: repo });
  expect(ran).toMatchObject({ code: 0, stdout: "inner\ninner\nouter\n" });
});

test.each(["SIGINT", "SIGTERM"] as const)(
  "[LV18] without a terminal %s ends everything that it runs and releases the lease",
  async (signal) => {
    // A process in the background of a shell ignores SIGINT and would not notice a TERM of the shell alone.
    const script = "sleep 600 & echo $!; wait; wait";
    const child = withoutTerminal("lock", "--", "sh", "-c", script);
    const ended = once(child, "close");
    const [pid] = await once(child.stdout ?? child, "data");
    const tree = treeOf(Number(pid));
    expect(tree).toHaveLength(1);
    child.kill(signal);
    expect(await ended).toEqual([128 + constants.signals[signal], null]);
    expect(alive(tree)).toEqual([]);
    await until("the lease is free", isFree);
  },
);

test("[LV18] a waiting command reports a lost connection and gets the lease after it is back", async () => {
  await using proxy = await CutProxy.to(server.url);
  const other = connect({ ...server, WebSocket }).sandbox(sandbox.id);
  const held = await other.lease.hold({ holder: "x" });
  const env = { BERTH_URL: proxy.url };
  const { printed, ended } = user.start(["lock", "--", "echo", "mine"], { cwd: repo, env });
  const isPrinted = (text: string) => until(text, () => printed.stderr.includes(text));
  await isPrinted("Waiting for x to finish");
  proxy.refuse(true);
  proxy.cut();
  await isPrinted("Connection lost; reconnecting\n");
  proxy.refuse(false);
  await isPrinted("Connected again\n");
  await held.release();
  expect(await ended).toMatchObject({ code: 0, stdout: "mine\n" });
});

test("[LV18] a second signal ends a command that ignores the first", async () => {
  const script = "trap '' INT TERM; echo ready; while :; do sleep 0.05; done";
  const child = withoutTerminal("lock", "--", "sh", "-c", script);
  const ended = once(child, "close");
  await once(child.stdout ?? child, "data");
  child.kill("SIGTERM");
  child.kill("SIGINT");
  expect(await ended).toEqual([137, null]);
  await until("the lease is free", isFree);
});

test.skipIf(!hasTmux)("[LV18] the keys of a terminal belong to its command", async () => {
  using screen = new TmuxScreen(user, repo);
  const script = "trap 'echo asked' INT; echo ready; while ! read -r line; do :; done; exit 7";
  screen.type(`berth lock -- sh -c "${script}"`, "Enter");
  await screen.shows(/ready$/m);
  for (const count of [1, 2, 3]) {
    screen.type("C-c");
    await screen.shows(new RegExp(`(\\^Casked[^]*){${count}}`));
  }
  screen.type("over", "Enter");
  await screen.shows("here>");
  await screen.hasEnded(7);
});
