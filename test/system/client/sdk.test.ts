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
    await sandbox.pause();
    expect((await sandbox.get()).state).toBe("paused");
    expect(await sandbox.waitUntilRunning()).toMatchObject({ state: "running" });
    await sandbox.destroy();
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
    await sandbox.writeFile("big", content, { progress: ({ bytes }) => up.push(bytes) });
    expect(up).toHaveLength(96);
    expect(up.at(-1)).toBe(total);
    const progress = (current: { bytes: number; total: number }) => {
      expect(current.total).toBe(total);
      down = current.bytes;
    };
    for await (const part of (await sandbox.readFile("big", { progress })).body) {
      bytes += part.byteLength;
    }
    expect([down, bytes]).toEqual([total, total]);
  });

  it("[SD12] opens a port that others can reach, and closes it", async () => {
    const sandbox = await createSandbox();
    const command = "exec python3 -m http.server 8123 --bind 127.0.0.1";
    await sandbox.startProcess({ command });
    const { pathUrl } = await sandbox.openPort({ port: 8123 });
    await until("it answers", async () => (await fetch(pathUrl)).status === 200);
    expect((await sandbox.ports()).ports).toMatchObject([{ port: 8123, wake: false }]);
    expect(await sandbox.closePort(8123)).toBeUndefined();
    expect((await sandbox.ports()).ports).toEqual([]);
  });
});
