/** kill -9 of workerd alone: the server restarts it, and what runs in sandboxes does not notice. */
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Viewer } from "../../agent/terminals/terminal-socket.ts";
import { until } from "../../until.ts";
import { expectNothingLeft, replaceWorkerd } from "../file-server.ts";
import { openViewer, Runs, readUntilCut } from "../runs/runs.ts";
import { type Server, startServer } from "../server.ts";

const lines = 250;
/** Runs for some 5 s. */
const printing = `for n in $(seq ${lines}); do echo line $n; sleep 0.02; done`;
const expectedOutput = Array.from({ length: lines }, (_, n) => `line ${n + 1}\n`).join("");
const restartsMax = 5;

async function startOwnServer(): Promise<Server> {
  const server = await startServer();
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

/** Reads a stream to its end and resumes it after each cut. */
async function follow(runs: Runs, processId: string): Promise<{ text: string; cuts: number }> {
  const chunks: Uint8Array[] = [];
  let [offset, cuts] = [0, 0];
  await until("the log is read to its end", async () => {
    const read = async (signal: AbortSignal) => {
      const response = await runs.bytes(processId, offset, signal);
      if (response.ok) return response;
      throw new Error(`the follower got ${response.status}: ${await response.text()}`);
    };
    const unlimited = { bytes: Number.POSITIVE_INFINITY, ms: 60_000 };
    const end = await readUntilCut(read, unlimited, (bytes) => {
      chunks.push(bytes);
      offset += bytes.length;
    }).catch((error: unknown) => {
      // fetch reports a broken or refused connection by a TypeError.
      if (!(error instanceof TypeError)) throw error;
      cuts += 1;
      return "cut";
    });
    return end === "whole";
  });
  return { text: Buffer.concat(chunks).toString(), cuts };
}

/** Views a terminal until its command has exited and reconnects after each cut. */
async function view(server: Server, path: string): Promise<{ text: string; cuts: number }> {
  const output: Buffer[] = [];
  let [offset, cuts] = [0, 0];
  const take = (bytes: Buffer) => {
    output.push(bytes);
    offset += bytes.length;
  };
  await until("the terminal has exited", async () => {
    let viewer: Viewer;
    try {
      viewer = await openViewer(server, path, { after: offset, take });
    } catch {
      // Nothing listens while workerd is restarted.
      return false;
    }
    await viewer.ended();
    expect(viewer.snapshots, "nothing was skipped").toEqual([]);
    if (viewer.exit !== undefined) return true;
    cuts += 1;
    return false;
  });
  return { text: Buffer.concat(output).toString().replaceAll("\r\n", "\n"), cuts };
}

describe("kill -9 of workerd", () => {
  it("[O9] restarts it alone: processes, followers, terminals, fences and keyed results live on", async () => {
    const server = await startOwnServer();
    const runs = await Runs.in(server);
    const path = `/v1/sandboxes/${runs.id}`;
    const before = (await server.call("GET", path)).body;
    const engine = server.engine.pid;

    const lease = await server.call("POST", `${path}/lease`, { holder: "deploy", ttlMs: 300_000 });
    expect(lease.status).toBe(201);
    const { token, fence } = lease.body as { token: string; fence: number };
    const call = (method: string, tail: string, body?: unknown, key?: string) => {
      const idempotency = key === undefined ? {} : { "idempotency-key": key };
      const headers = { "berth-lease": token, ...idempotency };
      return server.call(method, `${path}/${tail}`, body, { headers });
    };
    const keyed = { command: "echo ran >> count; date +%N" };
    const first = await call("POST", "exec", keyed, "before-the-kill");
    expect(first.body).toMatchObject({ exitCode: 0 });
    const printer = (await call("POST", "processes", { command: printing })).body;
    const id = String(printer.id);
    const followed = follow(runs, id);
    const argv = ["sh", "-c", printing];
    expect((await call("POST", "terminals", { id: "view", argv })).status).toBe(201);
    const viewed = view(server, `${runs.id}/terminals/view`);
    const slow = { command: "sleep 2; echo ran >> slow; date +%N" };
    const cutOff = call("POST", "exec", slow, "during-the-kill");
    const cutOffEnds = expect(cutOff).rejects.toThrow(TypeError);
    await pause(1_000);

    const { stderr } = server.launched.output;
    await replaceWorkerd(server);
    expect(server.launched.output.stderr.slice(stderr.length)).toBe(
      "berth: workerd ended (SIGKILL). Restarting it.\n",
    );
    const { pid } = server.workerd;
    const record = server.processRecord();
    expect(record).toMatchObject([{ pid: engine }, { name: "workerd", pid }]);
    await cutOffEnds;

    expect((await server.call("GET", path)).body).toMatchObject({
      state: "running",
      incarnation: before.incarnation,
    });
    expect(server.engine.pid).toBe(engine);
    expect(server.agentOf(runs.id).pid).toBe(runs.agent);
    const running = await runs.call("GET", `processes/${id}`);
    expect(running.body).toMatchObject({ state: "running", pid: printer.pid });
    const held = { state: "held", holder: "deploy", fence };
    expect((await runs.call("GET", "lease")).body).toMatchObject(held);
    expect((await server.exec(runs.id, "true")).body.error).toMatchObject({ code: "lease_held" });
    const fenced = await call("POST", "exec", { command: "echo in" });
    expect(fenced.body).toMatchObject({ exitCode: 0, stdout: "in\n" });

    const repeated = await call("POST", "exec", keyed, "before-the-kill");
    expect(repeated.body).toEqual(first.body);
    const slowAgain = await call("POST", "exec", slow, "during-the-kill");
    expect(slowAgain.body).toMatchObject({ exitCode: 0 });
    expect((await call("POST", "exec", slow, "during-the-kill")).body).toEqual(slowAgain.body);
    const counted = await call("POST", "exec", { command: "cat count slow" });
    expect(counted.body).toMatchObject({ stdout: "ran\nran\n" });

    const log = await followed;
    expect(log.text).toBe(expectedOutput);
    expect(log.cuts).toBeGreaterThan(0);
    expect(await runs.exited(id)).toMatchObject({ exitCode: 0, pid: printer.pid });
    const screen = await viewed;
    expect(screen.text).toBe(expectedOutput);
    expect(screen.cuts).toBeGreaterThan(0);

    expect((await call("DELETE", "lease")).status).toBe(200);
    const tree = server.processes();
    expect(await server.stop()).toMatchObject({ code: 0 });
    await expectNothingLeft(server, tree);
  });

  it("[O23] six times within a minute ends the server with one line and exit code 1", async () => {
    const server = await startOwnServer();
    await server.create();
    for (let kills = 0; kills < restartsMax; kills += 1) await replaceWorkerd(server);
    const tree = server.processes();
    process.kill(server.workerd.pid, "SIGKILL");
    const { code, stderr } = await server.ended();
    expect(code).toBe(1);
    const ends = stderr.split("\n").filter((line) => /^berth: workerd /.test(line));
    expect(ends).toEqual([
      ...Array(restartsMax).fill("berth: workerd ended (SIGKILL). Restarting it."),
      expect.stringMatching(/^berth: workerd keeps ending\. See .*workerd\.log\.$/),
    ]);
    await expectNothingLeft(server, tree);
  });
});
