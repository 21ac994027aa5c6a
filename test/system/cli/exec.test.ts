/** Tests `berth exec`: results, files, interrupts and network failures. See exec-*.test.ts for more. */
import { type SpawnOptions, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { root } from "../../../container/launch/paths.js";
import { until } from "../../until.ts";
import { CutProxy } from "../client/cut-proxy.ts";
import { expectNothingLeft, type StartedCommand, useCliUser } from "./cli-user.ts";

const { server, user, sandboxOf } = await useCliUser();
const repo = user.repo("app");
const sandbox = await sandboxOf(repo);

const exec = (args: string[], input?: string) =>
  user.berth(["exec", ...args], { cwd: repo, ...(input === undefined ? {} : { input }) });
const sh = (script: string, ...options: string[]) => exec([...options, "--", "sh", "-c", script]);
const started = (args: string[], env: Record<string, string> = {}) =>
  user.start(["exec", ...args], { cwd: repo, env });
const here = (path: string) => join(repo, path);

async function waitForOutput({ printed }: StartedCommand, text: string): Promise<void> {
  await until(`it says ${text}`, () => printed.stdout.includes(text));
}

describe("the result of a command", () => {
  test.each([0, 1, 2, 126, 127, 130, 255])("[LV7] exit code %i is passed on", async (code) => {
    expect((await sh(`exit ${code}`)).code).toBe(code);
  });

  test("[LV7] a signal gives 128 plus its number, a missing program 127", async () => {
    expect((await sh("kill -9 $$")).code).toBe(137);
    expect((await exec(["--", "no-such-program"])).code).toBe(127);
  });

  test("[LV7] output arrives unchanged per stream, and arguments arrive unchanged", async () => {
    const odd = ["", " ", "a b", "'", '"', "$HOME", "\\", "\n", "*", "--json", "é🙂"];
    const print = 'import sys, json; print(json.dumps(sys.argv[1:])); print("e", file=sys.stderr)';
    const ran = await exec(["--", "python3", "-c", print, ...odd]);
    expect(JSON.parse(ran.stdout)).toEqual(odd);
    expect(ran).toMatchObject({ code: 0, stderr: "e\n" });
    await expectNothingLeft(sandbox);
  });

  test("[LV8] 50 MB arrive completely", async () => {
    const make =
      "import sys\nfor n in range(50): sys.stdout.buffer.write(bytes([n, 10, 0, 255]) * 262144)";
    const expected = createHash("sha256");
    for (let n = 0; n < 50; n += 1)
      expected.update(Buffer.alloc(1 << 20, Buffer.from([n, 10, 0, 255])));
    const args = [join(root, "src/cli/main.ts"), "exec", "--", "python3", "-c", make];
    const options = { cwd: repo, env: user.environment, stdio: ["ignore", "pipe", "inherit"] };
    const run = spawn(process.execPath, args, options as SpawnOptions);
    const hash = createHash("sha256");
    let bytes = 0;
    run.stdout?.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      hash.update(chunk);
    });
    const [code] = await once(run, "close");
    expect({ code, bytes }).toEqual({ code: 0, bytes: 50 << 20 });
    expect(hash.digest("hex")).toBe(expected.digest("hex"));
  });

  test("[LV8] piped input arrives completely, and without a pipe the input is empty", async () => {
    expect(await exec(["--", "cat"], "hi\n")).toMatchObject({ code: 0, stdout: "hi\n" });
    expect(await exec(["--", "wc", "-c"])).toMatchObject({ code: 0, stdout: "0\n" });
    const large = "0123456789abcde\n".repeat(300_000);
    const sum = createHash("sha256").update(large).digest("hex");
    expect((await exec(["--", "sha256sum"], large)).stdout).toBe(`${sum}  -\n`);
    // A command that reads only a part is not waited for.
    expect((await exec(["--", "head", "-c", "5"], large)).stdout).toBe("01234");
    await expectNothingLeft(sandbox);
  });

  test("[LV9] with --json there is one document, also for a failure", async () => {
    const ran = await sh("echo out; echo err >&2; touch new; exit 5", "--json");
    expect(ran).toMatchObject({ code: 5, stderr: "" });
    const result = { exitCode: 5, signal: null, stdout: "out\n", stderr: "err\n" };
    const pull = { status: "done", changed: ["new"] };
    const rest = { encoding: "utf8", truncated: false, sync: {}, pull };
    expect(JSON.parse(ran.stdout)).toMatchObject({ sandbox: sandbox.id, ...result, ...rest });
    const bytes = await sh("printf '\\377\\000'", "--json");
    expect(JSON.parse(bytes.stdout)).toMatchObject({ encoding: "base64", stdout: "/wA=" });
    const refused = await exec(["--json", "--cwd", "nowhere", "--", "true"]);
    expect(refused.code).toBe(125);
    expect(JSON.parse(refused.stdout)).toMatchObject({ error: { code: "bad_cwd" } });
    await expectNothingLeft(sandbox);
  });
});

describe("files of a run", () => {
  test("[LV10] a run uses the current files and the caller's folder, and fetches changes", async () => {
    user.write(repo, "below/input", "of now");
    const args = ["exec", "--", "sh", "-c", "cat input; echo > made; exit 3"];
    const ran = await user.berth(args, { cwd: here("below") });
    expect(ran).toMatchObject({ code: 3, stdout: "of now" });
    expect(ran.stderr).toContain("Changed here: below/made");
    expect(existsSync(here("below/made"))).toBe(true);
  });

  test("[LV10] --no-pull, --env, --cwd and --timeout have their effects", async () => {
    expect((await sh("echo > unfetched", "--no-pull")).code).toBe(0);
    expect(existsSync(here("unfetched"))).toBe(false);
    const ran = await sh("echo $A $PWD", "--env", "A=b", "--cwd", "below");
    expect(ran.stdout).toBe("b /workspace/below\n");
    const late = await sh("echo begun; sleep 600", "--timeout", "1");
    expect(late).toMatchObject({ code: 124, stdout: "begun\n" });
    expect(late.stderr).toContain("longer than 1 s");
    await expectNothingLeft(sandbox);
  });

  test("[LV10] a file changed here meanwhile stays, is reported, and changes the exit code", async () => {
    user.write(repo, "both", "before\n");
    const script = "echo there > both; echo ready; trap 'exit 0' INT; while :; do sleep 0.05; done";
    const slow = started(["--json", "--", "sh", "-c", script]);
    const readThere = async () => {
      const { body } = await sandbox.files.stream("both");
      return await new Response(body as ReadableStream).text();
    };
    const hasChanged = async () => (await readThere().catch(() => "")) === "there\n";
    await until("the command has changed the file", hasChanged);
    user.write(repo, "both", "here\n");
    slow.child.kill("SIGINT");
    const ended = JSON.parse((await slow.ended).stdout);
    expect(ended.pull).toMatchObject({ status: "conflict", conflicts: [{ path: "both" }] });
    expect(readFileSync(here(ended.pull.conflicts[0].savedAs), "utf8")).toBe("there\n");
    expect(readFileSync(here("both"), "utf8")).toBe("here\n");
    await expectNothingLeft(sandbox);
  });
});

describe("interrupting a run", () => {
  test("[LV11] Ctrl-C reaches the command, its last changes are fetched, and the exit code is 130", async () => {
    const script =
      "trap 'echo cleaned > cleaned; exit 7' INT; echo ready; while :; do sleep 0.05; done";
    const run = started(["--", "sh", "-c", script]);
    await waitForOutput(run, "ready");
    run.child.kill("SIGINT");
    expect(await run.ended).toMatchObject({ code: 130 });
    expect(readFileSync(here("cleaned"), "utf8")).toBe("cleaned\n");
    await expectNothingLeft(sandbox);
  });

  test("[LV11] Ctrl-C while waiting leaves the queue", async () => {
    await using _held = await sandbox.lease.hold({ holder: "somebody" });
    const run = started(["--", "true"]);
    await until("it waits", async () => (await sandbox.lease.get()).waiterCount === 1);
    run.child.kill("SIGINT");
    expect(await run.ended).toMatchObject({ code: 130, stdout: "" });
    await until("its place is free", async () => (await sandbox.lease.get()).waiterCount === 0);
  });

  test("[LV12] a waiting user sees the holder once, and nothing with --json", async () => {
    const held = await sandbox.lease.hold({ holder: "somebody" });
    const run = started(["--", "echo", "mine"]);
    const quiet = started(["--json", "--", "true"]);
    await until("both wait", async () => (await sandbox.lease.get()).waiterCount === 2);
    await until("the holder is printed", () => run.printed.stderr.includes("\n"));
    expect(run.printed.stderr).toMatch(/^Waiting for somebody to finish(, 1 before this one)?\n$/);
    await held.release();
    expect(await run.ended).toMatchObject({ code: 0, stdout: "mine\n" });
    expect(await quiet.ended).toMatchObject({ code: 0, stderr: "" });
  });

  test("[LV12] [LV30] --wait ends the wait with code 124 and an error that names the holder", async () => {
    await using _held = await sandbox.lease.hold({ holder: "somebody" });
    const ran = await exec(["--wait", "1", "--json", "--", "true"]);
    expect(ran.code).toBe(124);
    const error = { code: "lease_wait_timeout", holder: "somebody" };
    expect(JSON.parse(ran.stdout)).toMatchObject({ error });
  });
});

describe("network failures", () => {
  const slowly = "for n in $(seq 1 40); do echo line $n; sleep 0.05; done";
  const lines = Array.from({ length: 40 }, (_, n) => `line ${n + 1}\n`).join("");

  test("[LV13] after silently lost connections nothing is missing and nothing comes twice", async () => {
    await using proxy = await CutProxy.to(server.url);
    const run = started(["--", "sh", "-c", slowly], { BERTH_URL: proxy.url });
    await waitForOutput(run, "line 5");
    proxy.cutSilently();
    expect(proxy.cuts).toBeGreaterThan(0);
    expect(await run.ended).toMatchObject({ code: 0, stdout: lines });
    await expectNothingLeft(sandbox);
  });

  test.each(["FIN", "RST"] as const)(
    "[LV13] a command outlives a cut by %s that the server sees: exit code and output are right, and one line tells of it",
    async (by) => {
      await using proxy = await CutProxy.to(server.url);
      const command = `${slowly}; exit 7`;
      const run = started(["--", "sh", "-c", command], { BERTH_URL: proxy.url });
      await waitForOutput(run, "line 5");
      proxy.refuse(true);
      proxy.cut(by);
      await until("it was refused twice", () => proxy.refused >= 2);
      proxy.refuse(false);
      const stderr = "Connection lost; reconnecting.\n";
      expect(await run.ended).toMatchObject({ code: 7, stdout: lines, stderr });
      await expectNothingLeft(sandbox);
    },
  );

  test("[LV13] a lease lost with its connection is an error of berth, not an exit code of the command", async () => {
    await using proxy = await CutProxy.to(server.url);
    const run = started(["--", "sh", "-c", "echo ready; sleep 600"], { BERTH_URL: proxy.url });
    await waitForOutput(run, "ready");
    proxy.refuse(true);
    proxy.cut();
    await until(
      "the server has given up",
      async () => (await sandbox.lease.get()).state === "free",
    );
    // The client learns from the log first that its command was ended by a signal.
    proxy.refuse(false);
    const ended = await run.ended;
    expect(ended.code).toBe(125);
    expect(ended.stderr).toContain("error: The lease has ended");
    await expectNothingLeft(sandbox);
  });
});
