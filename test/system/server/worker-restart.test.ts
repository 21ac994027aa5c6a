/** kill -9 of workerd alone: the server restarts it, and what runs in sandboxes does not notice. */
import { describe, expect, it, onTestFinished } from "vitest";
import type { Viewer } from "../../agent/terminals/terminal-socket.ts";
import { until } from "../../until.ts";
import { expectNothingLeft, replaceWorkerd } from "../file-server.ts";
import { openViewer, Runs, readUntilCut } from "../runs/runs.ts";
import { type Server, startServer } from "../server.ts";

const lines = 250;
/** Commands of the test wait for this file, so that they are cut off however slow the machine is. */
const waitForGo = "while ! test -e go; do sleep 0.05; done";
const halfway = `if test $n = ${lines / 2}; then ${waitForGo}; fi`;
const printing = `for n in $(seq ${lines}); do echo line $n; ${halfway}; sleep 0.01; done`;
const expectedOutput = Array.from({ length: lines }, (_, n) => `line ${n + 1}\n`).join("");
const restartsMax = 5;

async function startOwnServer(): Promise<Server> {
  const server = await startServer();
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

/** What a reader got by now, over all of its connections. */
class Reading {
  readonly #chunks: Uint8Array[] = [];
  offset = 0;
  cuts = 0;

  take(bytes: Uint8Array): void {
    this.#chunks.push(bytes);
    this.offset += bytes.length;
  }

  text(): string {
    return Buffer.concat(this.#chunks).toString().replaceAll("\r\n", "\n");
  }
}

/** Reads a stream to its end and resumes it after each cut. */
async function follow(runs: Runs, processId: string, reading: Reading): Promise<void> {
  await until("the log is read to its end", async () => {
    const read = async (signal: AbortSignal) => {
      const response = await runs.bytes(processId, reading.offset, signal);
      if (response.ok) return response;
      throw new Error(`the follower got ${response.status}: ${await response.text()}`);
    };
    const unlimited = { bytes: Number.POSITIVE_INFINITY, ms: 60_000 };
    const take = (bytes: Uint8Array) => reading.take(bytes);
    const end = await readUntilCut(read, unlimited, take).catch((error: unknown) => {
      // fetch reports a broken or refused connection by a TypeError.
      if (!(error instanceof TypeError)) throw error;
      reading.cuts += 1;
      return "cut";
    });
    return end === "whole";
  });
}

/** Views a terminal until its command has exited and reconnects after each cut. */
async function view(server: Server, path: string, reading: Reading): Promise<void> {
  const take = (bytes: Buffer) => reading.take(bytes);
  await until("the terminal has exited", async () => {
    let viewer: Viewer;
    try {
      viewer = await openViewer(server, path, { after: reading.offset, take });
    } catch {
      // Nothing listens while workerd is restarted.
      return false;
    }
    await viewer.ended();
    expect(viewer.snapshots, "nothing was skipped").toEqual([]);
    if (viewer.exit !== undefined) return true;
    reading.cuts += 1;
    return false;
  });
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
    const [log, screen] = [new Reading(), new Reading()];
    const followed = follow(runs, id, log);
    const argv = ["sh", "-c", printing];
    expect((await call("POST", "terminals", { id: "view", argv })).status).toBe(201);
    const viewed = view(server, `${runs.id}/terminals/view`, screen);
    const slow = { command: `touch waits; ${waitForGo}; echo ran >> slow; date +%N` };
    const cutOff = call("POST", "exec", slow, "during-the-kill");
    const cutOffEnds = expect(cutOff).rejects.toThrow(TypeError);
    const hasBegun = "test -e waits && echo begun";
    await until("all commands run", async () => {
      const { body } = await call("POST", "exec", { command: hasBegun });
      return body.stdout === "begun\n" && log.offset > 0 && screen.offset > 0;
    });

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
    const fenced = await call("POST", "exec", { command: "touch go; echo in" });
    expect(fenced.body).toMatchObject({ exitCode: 0, stdout: "in\n" });

    const repeated = await call("POST", "exec", keyed, "before-the-kill");
    expect(repeated.body).toEqual(first.body);
    const slowAgain = await call("POST", "exec", slow, "during-the-kill");
    expect(slowAgain.body).toMatchObject({ exitCode: 0 });
    expect((await call("POST", "exec", slow, "during-the-kill")).body).toEqual(slowAgain.body);
    const counted = await call("POST", "exec", { command: "cat count slow" });
    expect(counted.body).toMatchObject({ stdout: "ran\nran\n" });

    await Promise.all([followed, viewed]);
    expect(log.text()).toBe(expectedOutput);
    expect(log.cuts).toBeGreaterThan(0);
    expect(await runs.exited(id)).toMatchObject({ exitCode: 0, pid: printer.pid });
    expect(screen.text()).toBe(expectedOutput);
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
