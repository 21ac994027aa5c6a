/**
 * Proves `berth lock` with the real command and a real server: with a terminal and without one.
 * Does not own the lease (../client/live-lease.test.ts).
 */
import { type StdioOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { root } from "../../../container/launch/paths.js";
import { connect, type SandboxHandle } from "../../../src/client/index.ts";
import { CutProxy } from "../client/cut-proxy.ts";
import { alive, treeOf } from "../processes.ts";
import { type SharedServer, useSharedServer } from "../shared-server.ts";
import { until } from "../until.ts";
import { Person } from "./cli-user.ts";
import { hasTmux, Screen } from "./terminal/terminal-screen.ts";

let server: SharedServer;
let person: Person;
let repo: string;
let sandbox: SandboxHandle;
beforeAll(async () => {
  server = await useSharedServer();
  person = new Person(server);
  repo = person.repo("app");
  const made = await person.berth(["exec", "--json", "--", "true"], { cwd: repo });
  sandbox = connect(server).sandbox(JSON.parse(made.stdout).sandbox);
});
afterAll(async () => {
  person[Symbol.dispose]();
  await server[Symbol.asyncDispose]();
});

/** In a session of its own, whatever terminal the tests are run on. */
function withoutTerminal(...args: string[]) {
  const all = [join(root, "src/cli/main.ts"), ...args];
  const options = { cwd: repo, env: person.environment, detached: true };
  const stdio: StdioOptions = ["ignore", "pipe", "inherit"];
  const child = spawn(process.execPath, all, { ...options, stdio });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

describe("berth lock", () => {
  const berth = `${process.execPath} ${join(root, "src/cli/main.ts")}`;

  test("[LV18] holds the lease while a local command runs, which may use it, and passes on its code", async () => {
    const script = `${berth} lock status; ${berth} exec -- echo inside; exit 6`;
    const ran = await person.berth(["lock", "--", "sh", "-c", script], { cwd: repo });
    expect(ran).toMatchObject({ code: 6, signal: null });
    expect(ran.stdout).toMatch(/^held by .+ for \d+ s\ninside\n$/);
    await until("it is free", async () => (await sandbox.lease()).state === "free");
    const missing = await person.berth(["lock", "--", "no-such-program"], { cwd: repo });
    expect(missing.code).toBe(127);
  });

  test("[LV18] break takes it from its holder, whose local command is ended", async () => {
    const held = person.start(["lock", "--", "sleep", "600"], { cwd: repo });
    await until("it is held", async () => (await sandbox.lease()).state === "held");
    const unsaid = await person.berth(["lock", "break"], { cwd: repo });
    expect(unsaid).toMatchObject({ code: 1 });
    expect(unsaid.stderr).toContain("--reason");
    const broken = await person.berth(["lock", "break", "--reason", "a test"], { cwd: repo });
    expect(broken.stdout).toMatch(/^taken from /);
    const ended = await held.ended;
    expect(ended.code).toBe(1);
    expect(ended.stderr).toContain(
      `error: The lease has ended: broken by ${server.tenant}: a test.\nhint: `,
    );
    expect(await person.json(["lock", "status"], { cwd: repo })).toMatchObject({ state: "free" });
  });

  test("[LV18] push and cp inside of it use its lease, and what has to be set up there is", async () => {
    const cwd = person.repo("inside", "https://example.com/team/inside.git");
    person.write(cwd, ".berth/sandbox.json", JSON.stringify({ setup: ["echo > /tmp/is-set-up"] }));
    // Only made, not used: it is set up by the first who needs it.
    const made = await person.json<{ sandbox: { id: string } }>(["start"], { cwd });
    const steps = ["push", "cp README.md :/tmp/copied", "exec -- ls /tmp/is-set-up /tmp/copied"];
    const script = steps.map((step) => `${berth} ${step}`).join(" && ");
    const ran = await person.berth(["lock", "--id", made.sandbox.id, "--", "sh", "-c", script], {
      cwd,
    });
    expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining("/tmp/is-set-up\n") });
  });

  test("[LV24] commands inside of it that run at once come one after the other, each as a whole", async () => {
    const trace = join(person.home, "turns-trace");
    const one = (n: number) => `${berth} exec -- sh -c 'echo ${n} > mine; sleep 0.3; cat mine'`;
    const script = `${[1, 2, 3].map((n) => `${one(n)} & `).join("")} wait`;
    const ran = await person.berth(["lock", "--", "sh", "-c", script], {
      ...{ cwd: repo, env: { BERTH_TRACE: trace } },
    });
    expect(ran.code).toBe(0);
    expect(ran.stdout.trim().split("\n").sort()).toEqual(["1", "2", "3"]);
    const steps = readFileSync(trace, "utf8").trim().split("\n");
    const lines = steps.map((line) => JSON.parse(line) as { pid: number; step: string });
    const held = lines.filter(({ step }) => step !== "waiting");
    const whole = ["granted", "sync", "run", "ran", "pull", "release"];
    expect(held.map(({ step }) => step)).toEqual([...whole, ...whole, ...whole]);
    for (const [at, { pid }] of held.entries()) {
      expect(pid).toBe(held[at - (at % whole.length)]?.pid);
    }
  });

  test("[LV24] one that is killed gives its turn away; who waits is told for whom, and for no longer than he wants", async () => {
    const script = [
      `${berth} exec -- sh -c 'echo ready; trap "" TERM; while :; do date > alive; done' & first=$!`,
      `until [ -e ${person.home}/first ]; do sleep 0.05; done`,
      `${berth} exec --wait 1 -- true; echo "code $?"`,
      `${berth} exec -- sh -c 'rm -f alive; sleep 0.3; test -e alive || echo mine' & next=$!`,
      `until [ -e ${person.home}/next ]; do sleep 0.05; done`,
      "kill -9 $first; wait $next",
    ];
    const args = ["lock", "--", "bash", "-c", script.join("\n")];
    const { child, ended } = person.start(args, { cwd: repo });
    let [out, said] = ["", ""];
    child.stdout?.on("data", (more) => {
      out += more;
    });
    child.stderr?.on("data", (more) => {
      said += more;
    });
    await until("the first one runs", () => out.includes("ready"));
    writeFileSync(join(person.home, "first"), "");
    await until("one had enough", () => out.includes("code 1"));
    expect(said).toMatch(
      /^waiting for \S+ \(\d+\) to finish\nerror: .*\nhint: Wait longer by --wait/,
    );
    said = "";
    await until("the next one waits", () => said.includes("to finish\n"));
    expect(out).not.toContain("mine");
    writeFileSync(join(person.home, "next"), "");
    const ran = await ended;
    expect(ran).toMatchObject({ code: 0, stdout: expect.stringMatching(/mine\n$/) });
  });

  test("[LV24] one inside of another holds the turn for what runs inside of it", async () => {
    const inner = `${berth} lock -- sh -c "${berth} exec -- echo inner"`;
    const script = `${inner} & ${inner} & wait; ${berth} exec -- echo outer`;
    const ran = await person.berth(["lock", "--", "sh", "-c", script], { cwd: repo });
    expect(ran).toMatchObject({ code: 0, stdout: "inner\ninner\nouter\n" });
  });

  test.each(["SIGINT", "SIGTERM"] as const)(
    "[LV18] without a terminal %s ends all that it runs, and lets go of the lease",
    async (signal) => {
      // What a shell leaves in the background hears no SIGINT, and of a TERM for the shell alone it would not know.
      const script = "sleep 600 & echo $!; wait; wait";
      const child = withoutTerminal("lock", "--", "sh", "-c", script);
      const ended = once(child, "close");
      const [pid] = await once(child.stdout ?? child, "data");
      const seen = treeOf(Number(pid));
      expect(seen).toHaveLength(1);
      child.kill(signal);
      expect(await ended).toEqual([128 + constants.signals[signal], null]);
      expect(alive(seen)).toEqual([]);
      await until("it is free", async () => (await sandbox.lease()).state === "free");
    },
  );

  test("[LV18] who waits for it is told of a lost connection, and gets it when that is back", async () => {
    await using proxy = await CutProxy.to(server.url);
    const held = await connect({ ...server, WebSocket })
      .sandbox(sandbox.id)
      .hold({ holder: "x" });
    const env = { BERTH_URL: proxy.url };
    const { child, ended } = person.start(["lock", "--", "echo", "mine"], { cwd: repo, env });
    let said = "";
    child.stderr?.on("data", (more) => {
      said += more;
    });
    await until("it waits", () => said.includes("waiting for x to finish"));
    proxy.refuse(true);
    proxy.cut();
    await until("it is told", () => said.includes("connection lost; trying again\n"));
    proxy.refuse(false);
    await until("it is back", () => said.includes("connected again\n"));
    await held.release();
    expect(await ended).toMatchObject({ code: 0, stdout: "mine\n" });
  });

  test("[LV18] a second one ends also what does not listen", async () => {
    const script = "trap '' INT TERM; echo ready; while :; do sleep 0.05; done";
    const child = withoutTerminal("lock", "--", "sh", "-c", script);
    const ended = once(child, "close");
    await once(child.stdout ?? child, "data");
    child.kill("SIGTERM");
    child.kill("SIGINT");
    expect(await ended).toEqual([137, null]);
    await until("it is free", async () => (await sandbox.lease()).state === "free");
  });

  test.skipIf(!hasTmux)("[LV18] the keys of a terminal are its command's own", async () => {
    using screen = new Screen(person, repo);
    const script = "trap 'echo asked' INT; echo ready; while ! read -r line; do :; done; exit 7";
    screen.type(`berth lock -- sh -c "${script}"`, "Enter");
    await screen.shows(/ready$/m);
    for (const count of [1, 2, 3]) {
      screen.type("C-c");
      await screen.shows(new RegExp(`(\\^Casked[^]*){${count}}`));
    }
    screen.type("over", "Enter");
    await screen.shows("here>");
    screen.type("echo code-$?", "Enter");
    await screen.shows("code-7");
    await screen.isAsBefore();
  });
});
