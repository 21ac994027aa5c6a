import { describe, expect, it } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { rejection } from "../../unit/client/scripted-server.ts";
import { until } from "../../until.ts";
import { sharedServerOfFile } from "../shared-server.ts";

const server = await sharedServerOfFile();
const berth = connect(server);

const createSandbox = async () => berth.sandbox(await server.create());

describe("the SDK and a real Berth", () => {
  it("[SD12] waits until a sandbox runs: one that starts, is paused, or was created without a container", async () => {
    const seen: string[] = [];
    const { id } = await berth.create({ start: false });
    const sandbox = berth.sandbox(id);
    expect(sandbox.id).toBe(id);
    const progress = ({ state }: { state: string }) => seen.push(state);
    expect(await sandbox.waitUntilRunning({ progress })).toMatchObject({ id, state: "running" });
    expect(seen.at(0)).toBe("paused");
    expect(seen.at(-1)).toBe("running");
    await sandbox.stop();
    expect((await sandbox.get()).state).toBe("paused");
    expect(await sandbox.waitUntilRunning()).toMatchObject({ state: "running" });
    await sandbox.delete();
    await until("it is gone", async () => (await sandbox.get()).state === "destroyed");
    const error = await rejection(sandbox.waitUntilRunning());
    expect(error).toMatchObject({ code: "sandbox_destroyed", facts: { state: "destroyed" } });
  });

  it("[SD12] ends the command of a call that is cancelled", async () => {
    const sandbox = await createSandbox();
    const controller = new AbortController();
    const command = "echo began > began; exec sleep 987";
    const call = rejection(sandbox.exec({ command }, { signal: controller.signal }));
    const runs = async () => {
      const { stdout } = await sandbox.exec({ command: "cat began; pgrep -f '^sleep 987'" });
      return stdout;
    };
    await until("it runs", async () => /^began\n\d+\n$/.test(await runs()));
    controller.abort(new Error("enough"));
    expect(await call).toMatchObject({ message: "enough" });
    await until("it is ended", async () => (await runs()) === "began\n");
  });

  it.each(["plain", "session"] as const)(
    "[X58] an aborted call has its command ended before the first byte of a response: %s",
    async (kind) => {
      const sandbox = await createSandbox();
      const shell = await sandbox.sessions.create({ id: "shell" });
      const controller = new AbortController();
      const { signal } = controller;
      const call = {
        command: "trap 'echo term > ended; exit 1' TERM; echo up > up; sleep 600 & wait",
      };
      const running = rejection(
        kind === "plain"
          ? sandbox.exec(call, { signal })
          : shell.exec({ command: `sh -c "${call.command}"` }, { signal }),
      );
      const exists = (path: string) =>
        sandbox.files.stat(path).then(
          () => true,
          () => false,
        );
      await until("it runs", () => exists("up"));
      const abortedAt = performance.now();
      controller.abort(new Error("enough"));
      expect(await running).toMatchObject({ message: "enough" });
      await until("it got SIGTERM", () => exists("ended"));
      console.log(`${kind}: SIGTERM within ${Math.round(performance.now() - abortedAt)} ms`);
      await until("nothing runs", async () => (await sandbox.lease.get()).state === "free");
    },
  );

  it("[SD12] runs a command with a key once, for concurrent and repeated calls", async () => {
    const sandbox = await createSandbox();
    const call = { command: "echo ran >> runs; wc -l < runs" };
    const options = { idempotencyKey: "once" };
    const answers = await Promise.all([1, 2, 3].map(() => sandbox.exec(call, options)));
    expect(new Set(answers.map(({ execId }) => execId)).size).toBe(1);
    expect(answers.map(({ stdout }) => stdout.trim())).toEqual(["1", "1", "1"]);
    const error = await rejection(sandbox.exec({ command: "true" }, options));
    expect(error.code).toBe("idempotency_mismatch");
    expect(error.requestId).toMatch(/^[0-9a-f]{24}$/);
  });

  it("[SD12] streams a large file up and down in chunks and reports progress", async () => {
    const sandbox = await createSandbox();
    const total = 96 * 2 ** 20;
    const chunk = new Uint8Array(2 ** 20).fill(7);
    async function* chunks(): AsyncGenerator<Uint8Array> {
      for (let sent = 0; sent < total; sent += chunk.length) yield chunk;
    }
    const up: number[] = [];
    let [down, bytes] = [0, 0];
    const content = { stream: chunks(), bytes: total };
    await sandbox.files.write("big", content, { progress: ({ bytes }) => up.push(bytes) });
    expect(up).toHaveLength(96);
    expect(up.at(-1)).toBe(total);
    const progress = (current: { bytes: number; total: number }) => {
      expect(current.total).toBe(total);
      down = current.bytes;
    };
    for await (const part of (await sandbox.files.stream("big", { progress })).body) {
      bytes += part.byteLength;
    }
    expect([down, bytes]).toEqual([total, total]);
  });

  it("[SD12] opens a port that others can reach, and closes it", async () => {
    const sandbox = await createSandbox();
    const command = "exec python3 -m http.server 8123 --bind 127.0.0.1";
    await sandbox.processes.start({ command });
    const { pathUrl } = await sandbox.ports.open({ port: 8123 });
    await until("it answers", async () => (await fetch(pathUrl)).status === 200);
    expect([...(await sandbox.ports.list())]).toMatchObject([{ port: 8123, wake: false }]);
    expect(await sandbox.ports.close(8123)).toBeUndefined();
    expect(await sandbox.ports.list()).toHaveLength(0);
  });

  it("[SD15] passes output on while the command runs, and returns what exec returns", async () => {
    const sandbox = await createSandbox();
    const heard: string[] = [];
    const command = "cat; until [ -e ready ]; do sleep 0.02; done; echo ende \u00e4 >&2; exit 3";
    const result = await sandbox.exec(command, {
      cwd: "/workspace",
      stdin: "first\n",
      onStdout(text) {
        heard.push(text);
        void sandbox.files.write("/workspace/ready", "");
      },
      onStderr: (text) => heard.push(text),
    });
    expect(heard.join("")).toBe("first\nende \u00e4\n");
    const expected = { exitCode: 3, signal: null, timedOut: false, truncated: false, leftovers: 0 };
    expect(result).toMatchObject({ ...expected, stdout: "first\n", stderr: "ende \u00e4\n" });
    const short = await sandbox.exec("printf 123456", { maxOutputBytes: 4, onStdout: () => {} });
    expect(short).toMatchObject({ stdout: "1234", truncated: true });
  });

  it("[SD15] ends the command that it follows when its signal aborts", async () => {
    const sandbox = await createSandbox();
    const controller = new AbortController();
    const call = sandbox.exec("echo up; exec sleep 986", {
      signal: controller.signal,
      onStdout: () => controller.abort(new Error("enough")),
    });
    expect(await rejection(call)).toMatchObject({ message: "enough" });
    const running = () => sandbox.processes.list({ state: "running" });
    await until("it is ended", async () => (await running()).length === 0);
  });

  it("[SD16] forks the files of this moment into several sandboxes, and leaves no checkpoint", async () => {
    const sandbox = await createSandbox();
    await sandbox.files.write("a/kept.txt", "of both");
    const forks = await sandbox.fork(2, { settings: { metadata: { fork: "yes" } } });
    expect(new Set(forks.map(({ id }) => id)).size).toBe(2);
    await forks[0]?.files.write("a/kept.txt", "changed");
    expect(await forks[1]?.files.readText("a/kept.txt")).toBe("of both");
    expect(await sandbox.files.readText("a/kept.txt")).toBe("of both");
    expect(forks.map(({ info }) => info?.state)).toEqual(["running", "running"]);
    expect((await berth.list({ metadata: { fork: "yes" } })).length).toBe(2);
    expect(await sandbox.checkpoints.list()).toHaveLength(0);
    expect(await rejection(sandbox.fork(0))).toMatchObject({ facts: { field: "count" } });
  });

  it("[SD14] has sessions, terminals and plans as handles", async () => {
    const sandbox = await createSandbox();
    const session = await sandbox.sessions.create();
    await session.exec("cd /tmp; word=kept");
    expect((await session.exec("echo $word $PWD")).stdout).toBe("kept /tmp\n");
    expect((await (await session.start("exit 4")).wait()).exitCode).toBe(4);
    const terminal = await sandbox.terminals.create({
      argv: ["sh", "-c", "read word; echo got-$word; read it"],
    });
    await using live = await terminal.attach();
    live.write("one\n");
    await until("it answers", async () => (await terminal.screen()).text.includes("got-one"));
    await terminal.delete();
    const plan = await berth.plans.create(`handles-${sandbox.id}`);
    await plan.setMember("only", { sandboxId: sandbox.id });
    expect((await plan.get()).members).toHaveLength(1);
    expect((await plan.commit({ allowEmpty: true })).outcome).toBe("committed");
    expect((await plan.listCommits()).map(({ commit }) => commit)).toEqual([1]);
    await plan.delete();
    const removed = await rejection(berth.plans.get(plan.name));
    expect(removed.code).toBe("not_found");
  });
});
