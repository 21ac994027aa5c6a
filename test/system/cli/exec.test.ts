/**
 * Proves `berth exec` with the real command, real checkouts and a real server: what goes in, what comes out, what is
 * left. Does not own many at once (exec-many.test.ts), nor terminals (attach.test.ts).
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { root } from "../../../container/launch/paths.js";
import { connect, type SandboxHandle } from "../../../src/client/index.ts";
import { CutProxy } from "../client/cut-proxy.ts";
import { type SharedServer, useSharedServer } from "../shared-server.ts";
import { until } from "../until.ts";
import { Person, type Started } from "./cli-user.ts";

let server: SharedServer;
let person: Person;
let repo: string;
let sandbox: SandboxHandle;
beforeAll(async () => {
  server = await useSharedServer();
  person = new Person(server);
  repo = person.repo("app");
  const made = await exec(["--json", "--", "true"]);
  sandbox = connect(server).sandbox(JSON.parse(made.stdout).sandbox);
});
afterAll(async () => {
  person[Symbol.dispose]();
  await server[Symbol.asyncDispose]();
});

const exec = (args: string[], input?: string) =>
  person.berth(["exec", ...args], { cwd: repo, ...(input === undefined ? {} : { input }) });
const sh = (script: string, ...options: string[]) => exec([...options, "--", "sh", "-c", script]);
const started = (args: string[], env: Record<string, string> = {}) =>
  person.start(["exec", ...args], { cwd: repo, env });
const here = (path: string) => join(repo, path);

async function says(run: Started, text: string): Promise<void> {
  let said = "";
  run.child.stdout?.on("data", (more) => {
    said += more;
  });
  await until(`it says ${text}`, () => said.includes(text));
}

/** Nobody holds it, nobody waits, nothing runs. */
async function nothingLeft(): Promise<void> {
  await until("the lease is free", async () => {
    const { state, waiterCount } = await sandbox.lease();
    return state === "free" && waiterCount === 0;
  });
  expect((await sandbox.processes({ state: "running" })).processes).toEqual([]);
}

describe("what a command gives", () => {
  test.each([0, 1, 2, 126, 127, 130, 255])("[LV7] exit code %i is passed on", async (code) => {
    expect((await sh(`exit ${code}`)).code).toBe(code);
  });

  test("[LV7] a signal is 128 and its number; a program that is not there 127", async () => {
    expect((await sh("kill -9 $$")).code).toBe(137);
    expect((await exec(["--", "no-such-program"])).code).toBe(127);
  });

  test("[LV7] output comes by stream, as it was, and arguments arrive to the byte", async () => {
    const odd = ["", " ", "a b", "'", '"', "$HOME", "\\", "\n", "*", "--json", "é🙂"];
    const print = 'import sys, json; print(json.dumps(sys.argv[1:])); print("e", file=sys.stderr)';
    const ran = await exec(["--", "python3", "-c", print, ...odd]);
    expect(JSON.parse(ran.stdout)).toEqual(odd);
    expect(ran).toMatchObject({ code: 0, stderr: "e\n" });
    await nothingLeft();
  });

  test("[LV8] 50 MB arrive whole", async () => {
    const make =
      "import sys\nfor n in range(50): sys.stdout.buffer.write(bytes([n, 10, 0, 255]) * 262144)";
    const expected = createHash("sha256");
    for (let n = 0; n < 50; n += 1)
      expected.update(Buffer.alloc(1 << 20, Buffer.from([n, 10, 0, 255])));
    const run = spawn(
      process.execPath,
      [join(root, "src/cli/main.ts"), "exec", "--", "python3", "-c", make],
      {
        ...{ cwd: repo, env: person.environment, stdio: ["ignore", "pipe", "inherit"] },
      },
    );
    const hash = createHash("sha256");
    let bytes = 0;
    run.stdout.on("data", (piece: Buffer) => {
      bytes += piece.length;
      hash.update(piece);
    });
    const [code] = await once(run, "close");
    expect({ code, bytes, hash: hash.digest("hex") }).toEqual({
      ...{ code: 0, bytes: 50 << 20, hash: expected.digest("hex") },
    });
  });

  test("[LV8] what is piped in arrives whole, and without anything input is empty", async () => {
    expect(await exec(["--", "cat"], "hi\n")).toMatchObject({ code: 0, stdout: "hi\n" });
    expect(await exec(["--", "wc", "-c"])).toMatchObject({ code: 0, stdout: "0\n" });
    const large = "0123456789abcde\n".repeat(300_000);
    const sum = createHash("sha256").update(large).digest("hex");
    expect((await exec(["--", "sha256sum"], large)).stdout).toBe(`${sum}  -\n`);
    // One that reads a part of it is not waited for.
    expect((await exec(["--", "head", "-c", "5"], large)).stdout).toBe("01234");
    await nothingLeft();
  });

  test("[LV9] with --json there is one document, also of a failure", async () => {
    const ran = await sh("echo out; echo err >&2; touch new; exit 5", "--json");
    expect(ran).toMatchObject({ code: 5, stderr: "" });
    expect(JSON.parse(ran.stdout)).toMatchObject({
      ...{ sandbox: sandbox.id, exitCode: 5, signal: null, stdout: "out\n", stderr: "err\n" },
      ...{
        encoding: "utf8",
        truncated: false,
        sync: {},
        pull: { status: "done", changed: ["new"] },
      },
    });
    const bytes = await sh("printf '\\377\\000'", "--json");
    expect(JSON.parse(bytes.stdout)).toMatchObject({ encoding: "base64", stdout: "/wA=" });
    const refused = await exec(["--json", "--cwd", "nowhere", "--", "true"]);
    expect(refused.code).toBe(1);
    expect(JSON.parse(refused.stdout)).toMatchObject({ error: { code: "bad_cwd" } });
    await nothingLeft();
  });
});

describe("what a run does to the checkout", () => {
  test("[LV10] it runs on the files of this moment, where the caller stands, and brings changes back", async () => {
    person.write(repo, "below/input", "of now");
    const ran = await person.berth(["exec", "--", "sh", "-c", "cat input; echo > made; exit 3"], {
      cwd: here("below"),
    });
    expect(ran).toMatchObject({ code: 3, stdout: "of now" });
    expect(ran.stderr).toContain("changed here: below/made");
    expect(existsSync(here("below/made"))).toBe(true);
  });

  test("[LV10] --no-pull leaves the changes there; --env, --cwd and --timeout do what they say", async () => {
    expect((await sh("echo > unfetched", "--no-pull")).code).toBe(0);
    expect(existsSync(here("unfetched"))).toBe(false);
    const ran = await sh("echo $A $PWD", "--env", "A=b", "--cwd", "below");
    expect(ran.stdout).toBe("b /workspace/below\n");
    const late = await sh("echo begun; sleep 600", "--timeout", "1");
    expect(late).toMatchObject({ code: 124, stdout: "begun\n" });
    expect(late.stderr).toContain("longer than 1 s");
    await nothingLeft();
  });

  test("[LV10] a file that is changed here meanwhile is kept, said, and not passed over in the exit code", async () => {
    person.write(repo, "both", "before\n");
    const script = "echo there > both; echo ready; trap 'exit 0' INT; while :; do sleep 0.05; done";
    const slow = started(["--json", "--", "sh", "-c", script]);
    const isThere = async () => {
      const lookOnly = sandbox
        .readFile("both")
        .then(({ body }) => new Response(body as ReadableStream).text());
      return (await lookOnly.catch(() => "")) === "there\n";
    };
    await until("it has changed it", isThere);
    person.write(repo, "both", "here\n");
    slow.child.kill("SIGINT");
    const ended = JSON.parse((await slow.ended).stdout);
    expect(ended.pull).toMatchObject({ status: "conflict", conflicts: [{ path: "both" }] });
    expect(readFileSync(here(ended.pull.conflicts[0].savedAs), "utf8")).toBe("there\n");
    expect(readFileSync(here("both"), "utf8")).toBe("here\n");
    await nothingLeft();
  });
});

describe("ending a run before its time", () => {
  test("[LV11] Ctrl-C reaches the command; what it still does counts, and the exit code is 130", async () => {
    const script =
      "trap 'echo cleaned > cleaned; exit 7' INT; echo ready; while :; do sleep 0.05; done";
    const run = started(["--", "sh", "-c", script]);
    await says(run, "ready");
    run.child.kill("SIGINT");
    expect(await run.ended).toMatchObject({ code: 130 });
    expect(readFileSync(here("cleaned"), "utf8")).toBe("cleaned\n");
    await nothingLeft();
  });

  test("[LV11] a second Ctrl-C ends a command that does not care for the first", async () => {
    const run = started([
      "--",
      "sh",
      "-c",
      "trap '' INT TERM; echo ready; while :; do sleep 0.05; done",
    ]);
    await says(run, "ready");
    run.child.kill("SIGINT");
    const [{ id = "" } = {}] = (await sandbox.processes({ state: "running" })).processes;
    run.child.kill("SIGINT");
    expect(await run.ended).toMatchObject({ code: 130 });
    expect(await sandbox.process(id)).toMatchObject({ state: "exited" });
    await nothingLeft();
  });

  test("[LV11] Ctrl-C of one that waits leaves the queue", async () => {
    await using _held = await sandbox.hold({ holder: "somebody" });
    const run = started(["--", "true"]);
    await until("it waits", async () => (await sandbox.lease()).waiterCount === 1);
    run.child.kill("SIGINT");
    expect(await run.ended).toMatchObject({ code: 130, stdout: "" });
    await until("its place is free", async () => (await sandbox.lease()).waiterCount === 0);
  });

  test("[LV12] who waits is told for whom, once; with --json nobody is told", async () => {
    const held = await sandbox.hold({ holder: "somebody" });
    const run = started(["--", "echo", "mine"]);
    const quiet = started(["--json", "--", "true"]);
    let said = "";
    run.child.stderr?.on("data", (more) => {
      said += more;
    });
    await until("both wait", async () => (await sandbox.lease()).waiterCount === 2);
    await until("it is said", () => said.includes("\n"));
    expect(said).toMatch(/^waiting for somebody to finish(, 1 before this one)?\n$/);
    await held.release();
    expect(await run.ended).toMatchObject({ code: 0, stdout: "mine\n" });
    expect(await quiet.ended).toMatchObject({ code: 0, stderr: "" });
  });

  test("[LV12] --wait ends the waiting with an error that names the holder", async () => {
    await using _held = await sandbox.hold({ holder: "somebody" });
    const ran = await exec(["--wait", "1", "--json", "--", "true"]);
    expect(ran.code).toBe(1);
    expect(JSON.parse(ran.stdout)).toMatchObject({
      error: { code: "lease_wait_timeout", holder: "somebody" },
    });
  });
});

describe("a network that fails", () => {
  const slowly = "for n in $(seq 1 40); do echo line $n; sleep 0.05; done";
  const lines = Array.from({ length: 40 }, (_, n) => `line ${n + 1}\n`).join("");

  test("[LV13] connections that are lost without a word are made up for: nothing is missing, nothing comes twice", async () => {
    await using proxy = await CutProxy.to(server.url);
    const run = started(["--", "sh", "-c", slowly], { BERTH_URL: proxy.url });
    await says(run, "line 5");
    proxy.cutSilently();
    expect(proxy.cuts).toBeGreaterThan(0);
    expect(await run.ended).toMatchObject({ code: 0, stdout: lines });
    await nothingLeft();
  });

  test("[LV13] a lease that is lost with its connection is an error of ours, not an exit code of the command", async () => {
    await using proxy = await CutProxy.to(server.url);
    const run = started(["--", "sh", "-c", "echo ready; sleep 600"], { BERTH_URL: proxy.url });
    await says(run, "ready");
    proxy.refuse(true);
    proxy.cut();
    const ended = await run.ended;
    expect(ended.code).toBe(1);
    expect(ended.stderr).toContain("error: The lease has ended");
    await nothingLeft();
  });
});
