/** The stock SDK of E2B, its newest and its oldest supported version, against a real Berth: only its variables are set. */
import * as newest from "e2b";
import * as oldest from "e2b-oldest";
import { describe, expect, it } from "vitest";
import { until } from "../../until.ts";
import { sharedServerOfFile } from "../shared-server.ts";

const server = await sharedServerOfFile();
const versions = [
  ["2.51", newest],
  ["2.46", oldest as unknown as typeof newest],
] as const;

/** Only a hang takes this long. */
const limitMs = 120_000;
const options = {
  apiKey: server.key,
  apiUrl: server.url,
  sandboxUrl: server.url,
  requestTimeoutMs: limitMs,
  timeoutMs: 600_000,
};

describe.each(versions)("the SDK of E2B %s", (_version, { Sandbox, ...e2b }) => {
  const create = (more = {}) => Sandbox.create({ ...options, ...more });

  it("[WE5] creates, finds, lists, pauses, connects and kills a sandbox", async () => {
    const metadata = { "app/name": "a b&=%ü", owner: crypto.randomUUID() };
    const box = await create({ metadata, envs: { COLOUR: "red" } });
    expect(await box.isRunning()).toBe(true);
    expect(await box.getInfo()).toMatchObject({
      ...{ sandboxId: box.sandboxId, templateId: "base", state: "running", metadata },
    });
    const listed = await Sandbox.list({ ...options, query: { metadata } }).nextItems();
    expect(listed.map(({ sandboxId }) => sandboxId)).toEqual([box.sandboxId]);
    const end = async () => (await box.getInfo()).endAt.getTime();
    const before = await end();
    await box.setTimeout(60_000);
    expect(await end()).toBeLessThan(before);
    const shortened = await end();
    await Sandbox.connect(box.sandboxId, { ...options, timeoutMs: 1_000 });
    expect(await end()).toBe(shortened);
    await box.files.write("kept.txt", "kept");
    expect(await Sandbox.pause(box.sandboxId, options)).toBe(true);
    expect(await Sandbox.pause(box.sandboxId, options)).toBe(false);
    expect(await box.isRunning()).toBe(false);
    const refused = box.commands.run("true", { requestTimeoutMs: limitMs });
    await expect(refused).rejects.toThrow(/not running|not found/);
    const connected = await Sandbox.connect(box.sandboxId, options);
    expect(await connected.files.read("kept.txt")).toBe("kept");
    const { stdout } = await box.commands.run("echo $COLOUR $HOME", { timeoutMs: limitMs });
    expect(stdout).toBe("red /home/user\n");
    expect(await box.kill()).toBe(true);
    expect(await box.kill()).toBe(false);
    expect(await box.isRunning()).toBe(false);
    const remaining = Sandbox.list({ ...options, query: { metadata } }).nextItems();
    expect(await remaining).toEqual([]);
  });

  it("[WE6] runs commands: output, exit codes, input, signals, time limits and what they leave", async () => {
    const box = await create();
    const { commands } = box;
    const patient = { timeoutMs: limitMs, requestTimeoutMs: limitMs };
    const ran = await commands.run("echo out; echo err >&2; pwd", patient);
    expect(ran).toMatchObject({ exitCode: 0, stdout: "out\n/home/user\n", stderr: "err\n" });
    await expect(commands.run("exit 3", patient)).rejects.toMatchObject({ exitCode: 3 });
    await expect(commands.run("true", { ...patient, cwd: "/missing" })).rejects.toThrow(
      "cwd '/missing' does not exist",
    );
    const cat = await commands.run("cat", { ...patient, background: true, stdin: true });
    await commands.sendStdin(cat.pid, "hello\n");
    const other = await commands.connect(cat.pid, patient);
    expect((await commands.list()).map(({ pid }) => pid)).toEqual([cat.pid]);
    expect(await commands.kill(cat.pid)).toBe(true);
    await expect(other.wait()).rejects.toMatchObject({ error: "signal: killed" });
    expect(await commands.kill(cat.pid)).toBe(false);
    await expect(commands.run("sleep 1000", { timeoutMs: 1_000 })).rejects.toMatchObject({
      name: "TimeoutError",
    });
    await commands.run("nohup sleep 1000 > /dev/null 2>&1 & echo $! > pid", patient);
    expect((await commands.run("kill -0 $(cat pid) && echo up", patient)).stdout).toBe("up\n");
    const bytes = 2_000_000;
    const flood = await commands.run(`head -c ${bytes} /dev/zero | tr '\\0' x`, patient);
    expect(flood.stdout.length).toBe(bytes);
    await box.kill();
  });

  it("[WE7] writes, reads, lists, moves, watches and removes files", async () => {
    const box = await create();
    const { files } = box;
    expect(await files.write("a/b.txt", "hellö")).toMatchObject({ path: "/home/user/a/b.txt" });
    expect(await files.read("/home/user/a/b.txt")).toBe("hellö");
    const large = new Uint8Array(6_000_000).fill(7);
    await files.write([
      { path: "empty", data: "" },
      { path: "/tmp/large file", data: large.buffer },
    ]);
    expect(await files.read("empty")).toBe("");
    const read = await files.read("/tmp/large file", { format: "bytes" });
    expect(Buffer.compare(read, large)).toBe(0);
    await files.write("zipped.txt", "zip ".repeat(1000), { gzip: true });
    expect((await files.read("zipped.txt")).length).toBe(4000);
    const listed = await files.list("/home/user", { depth: 2 });
    expect(listed.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["a", "b.txt", "empty", "zipped.txt"]),
    );
    expect(await files.getInfo("a/b.txt")).toMatchObject({
      ...{ type: "file", permissions: "-rw-r--r--", owner: "user", size: 6 },
    });
    expect([await files.makeDir("new"), await files.makeDir("new")]).toEqual([true, false]);
    const seen: string[] = [];
    const watch = await files.watchDir(
      "new",
      ({ name, type }) => void seen.push(`${type} ${name}`),
    );
    await files.rename("a/b.txt", "new/c.txt");
    await until("it saw the file", () => seen.includes("create c.txt"));
    await watch.stop();
    await files.remove("new");
    await files.remove("new");
    expect(await files.exists("new")).toBe(false);
    await expect(files.read("new/c.txt")).rejects.toThrow("does not exist");
    await expect(files.read("x", { user: "nobody-here" })).rejects.toThrow("invalid username");
    await box.kill();
  });

  it("[WE8] types into a terminal and gets all of its output and its exit", async () => {
    const box = await create();
    const output: string[] = [];
    const terminal = await box.pty.create({
      ...{ cols: 80, rows: 24, timeoutMs: limitMs },
      onData: (bytes) => void output.push(Buffer.from(bytes).toString()),
    });
    await box.pty.resize(terminal.pid, { cols: 100, rows: 30 });
    await box.pty.sendInput(terminal.pid, Buffer.from("stty size; exit 4\r"));
    await expect(terminal.wait()).rejects.toMatchObject({ exitCode: 4 });
    expect(output.join("")).toContain("30 100");
    await box.kill();
  });

  it("[WE9] snapshots outlive their sandbox, and a run ends with a pause where that is asked for", async () => {
    const box = await create();
    await box.files.write("f", "snapped");
    const { snapshotId } = await box.createSnapshot();
    await box.kill();
    const copy = await Sandbox.create(snapshotId, options);
    expect(await copy.files.read("f")).toBe("snapped");
    await copy.kill();
    expect(await Sandbox.deleteSnapshot(snapshotId, options)).toBe(true);
    expect(await Sandbox.deleteSnapshot(snapshotId, options)).toBe(false);
    const pausing = await create({ timeoutMs: 1_000, lifecycle: { onTimeout: "pause" } });
    const state = async () => (await pausing.getInfo()).state;
    await until("it has paused", async () => (await state()) === "paused");
    await pausing.kill();
  });

  it("[WE10] refuses in the form that the SDK expects", async () => {
    const { AuthenticationError, SandboxError } = e2b;
    await expect(create({ apiKey: "e2b_00" })).rejects.toBeInstanceOf(AuthenticationError);
    await expect(create({ metadata: { "no spaces": "x" } })).rejects.toBeInstanceOf(SandboxError);
    await expect(Sandbox.create("missing", options)).rejects.toThrow("404");
    const other = "k3v9q2m7x1c5b8n4tq0w8e2r";
    await expect(Sandbox.getInfo(other, options)).rejects.toThrow("not found");
  });
});
