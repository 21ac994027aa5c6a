/** Saved trees while other things happen: destroy, removal, forks, callers who go, changes of metadata. */
import { afterEach, describe, expect, it } from "vitest";
import { connectCalls } from "../../berth-calls.ts";
import { until } from "../../until.ts";
import { startFileServer } from "../file-server.ts";
import { processesNaming } from "../processes.ts";
import {
  checkpoint,
  copiesOf,
  engineEntries,
  listed,
  pauseCopy,
  post,
  restore,
  runPython,
  settled,
  trashIsEmpty,
} from "./workspace.ts";

/** Long enough under way to be met in the middle. */
const many = 6000;
const fill = (count: number) => `
import os
for n in range(${count}):
    at = f"/workspace/{n // 200}"
    if n % 200 == 0: os.makedirs(at, exist_ok=True)
    open(f"{at}/{n}", "w").write(str(n))
`;
const countFiles = "find /workspace -type f | wc -l";

const server = await startFileServer();

describe("saved trees during other calls", () => {
  afterEach(() => trashIsEmpty(server));

  const filled = async (more = {}, count = many) => {
    const id = await server.create(more);
    await runPython(server, id, fill(count));
    return id;
  };
  const path = (id: string, tail = "") => `/v1/sandboxes/${id}${tail}`;
  const files = async (id: string) => {
    const { body } = await server.exec(id, countFiles);
    expect(body).toMatchObject({ exitCode: 0 });
    return Number(body.stdout);
  };
  const destroy = (id: string) => server.call("DELETE", path(id));
  const trees = () => engineEntries(server, "snapshots").length;

  it("[H16] a destroy ends a checkpoint that is being made, at once and without a trace", async () => {
    const id = await filled();
    const before = trees();
    const saving = post(server, id, "checkpoints", {});
    const copy = await pauseCopy(server);
    // The copy stands still: who waited for it would wait for ever.
    expect((await destroy(id)).body).toMatchObject({ state: "destroyed" });
    const refused = await saving;
    expect(refused.status, JSON.stringify(refused.body)).toBe(410);
    expect(refused.body).toMatchObject({ error: { code: "sandbox_destroyed" } });
    copy.resume();
    expect(trees()).toBe(before);
    expect(engineEntries(server, "trees")).not.toContain(id);
    expect(copiesOf(server.engine.pid)).toEqual([]);
  });

  it("[H16] a destroy ends a restore in progress", async () => {
    const id = await filled();
    const saved = await checkpoint(server, id);
    const restoring = post(server, id, `checkpoints/${saved}/restore`);
    const copy = await pauseCopy(server);
    expect((await destroy(id)).body).toMatchObject({ state: "destroyed" });
    expect((await restoring).body).toMatchObject({ state: expect.stringMatching(/^destroy/) });
    copy.resume();
    expect(engineEntries(server, "trees")).not.toContain(id);
    expect(trees()).toBe(0);
  });

  it("[H17] a checkpoint that is deleted during a restore or a fork is still read to its end", async () => {
    const id = await filled();
    const saved = await checkpoint(server, id);
    await server.exec(id, "rm -rf /workspace/*");
    const restoring = post(server, id, `checkpoints/${saved}/restore`);
    const copy = await pauseCopy(server);
    const given = await server.call("DELETE", path(id, `/checkpoints/${saved}`));
    expect(given.status).toBe(200);
    expect(await listed(server, id)).toEqual([]);
    copy.resume();
    expect((await restoring).body).toMatchObject({ state: "running", files: "snapshot" });
    expect(await files(id)).toBe(many);
    await until("its tree is gone", () => trees() === 0, 120_000);

    const second = await checkpoint(server, id);
    const forking = server.call("POST", "/v1/sandboxes", { from: second, waitMs: 20_000 });
    const forkCopy = await pauseCopy(server);
    expect((await server.call("DELETE", path(id, `/checkpoints/${second}`))).status).toBe(200);
    forkCopy.resume();
    const fork = (await forking).body;
    expect(fork).toMatchObject({ state: "running", files: "snapshot" });
    expect(await files(String(fork.id))).toBe(many);
    await until("its tree is gone", () => trees() === 0, 120_000);
    await Promise.all([destroy(id), destroy(String(fork.id))]);
  });

  it("[H18] a fork whose checkpoint is gone before its first start fails with that reason, and never starts empty", async () => {
    const id = await server.create();
    const saved = await checkpoint(server, id);
    const made = await server.call("POST", "/v1/sandboxes", { from: saved, start: false });
    const fork = String(made.body.id);
    await destroy(id);
    const late = await server.call("POST", "/v1/sandboxes", { from: saved });
    expect(late.status).toBe(410);
    for (let tries = 0; tries < 2; tries += 1) {
      const started = await post(server, fork, "start");
      expect(started.body).toMatchObject({ state: "failed", reason: "snapshot_missing" });
    }
    expect((await server.exec(fork, "true")).status).toBeGreaterThanOrEqual(400);
    expect(engineEntries(server, "trees")).not.toContain(fork);
    await destroy(fork);
  });

  it("[H19] a paused and a failed sandbox can be saved too; one without files is refused, with the hint to start it", async () => {
    const id = await filled();
    expect((await post(server, id, "pause")).status).toBe(200);
    await settled(server, id, "paused");
    const ofPaused = await checkpoint(server, id);
    expect((await server.call("GET", path(id))).body.state).toBe("paused");
    await server.exec(id, "rm -rf /workspace/1");
    const agents = processesNaming("--kill-child").filter(({ pid }) => isOf(pid));
    expect(agents.length).toBeGreaterThan(0);
    for (const { pid } of agents) process.kill(pid, "SIGKILL");
    await until("it is lost", async () => {
      await server.call("GET", path(id, "/processes"));
      return (await server.call("GET", path(id))).body.state === "failed";
    });
    const ofFailed = await checkpoint(server, id);
    await restore(server, id, ofPaused);
    expect(await files(id)).toBe(many);
    await restore(server, id, ofFailed);
    expect(await files(id)).toBe(many - 200);
    const never = await server.call("POST", "/v1/sandboxes", { start: false });
    const refused = await post(server, String(never.body.id), "checkpoints", {});
    expect([refused.status, refused.body.error?.code]).toEqual([409, "not_running"]);
    expect(await listed(server, String(never.body.id))).toEqual([]);
    await Promise.all([destroy(id), destroy(String(never.body.id))]);
    expect(trees()).toBe(0);
  });

  /** Processes of this server only, because the machine may run others. */
  const isOf = (pid: number) => server.processes().some((seen) => seen.pid === pid);

  it("[H20] each of several concurrent calls completes or is refused as retryable; lists and reads respond meanwhile", async () => {
    const id = await filled();
    const saving = post(server, id, "checkpoints", { name: "held" });
    const copy = await pauseCopy(server);
    const others = ["checkpoints", "checkpoints", "pause"].map((what) => post(server, id, what));
    const began = performance.now();
    expect(await listed(server, id)).toEqual([]);
    expect((await server.call("GET", path(id))).body.state).toBe("running");
    expect((await server.call("GET", path(id, "/events"))).status).toBe(200);
    expect(performance.now() - began).toBeLessThan(10_000);
    copy.resume();
    expect((await saving).status).toBe(201);
    let version = 1;
    for (const { status, body } of await Promise.all(others)) {
      if (status === 201) version += 1;
      else if (status !== 200) expect(body.error).toMatchObject({ retryable: true });
    }
    const ids = await listed(server, id);
    expect(ids).toHaveLength(version);
    expect(trees()).toBe(version);
    for (const checkpointId of ids) {
      await restore(server, id, checkpointId);
      expect(await files(id)).toBe(many);
    }
    await destroy(id);
  });

  it("[H21] a caller that disconnects midway leaves a complete checkpoint or none, and a working sandbox", async () => {
    const id = await filled();
    const leaving = new AbortController();
    const saving = connectCalls(server).sandbox(id).makeCheckpoint({}, { signal: leaving.signal });
    const copy = await pauseCopy(server);
    leaving.abort();
    await expect(saving).rejects.toThrow();
    copy.resume();
    expect(await files(id)).toBe(many);
    await until("rows and trees agree", async () => (await listed(server, id)).length === trees());
    for (const checkpointId of await listed(server, id)) await restore(server, id, checkpointId);
    expect(await files(id)).toBe(many);
    await destroy(id);
  });

  it("[H22] the files of running programs are saved at one moment: two files written in turns differ by one round at most", async () => {
    const id = await filled();
    const script = "while :; do echo x >> /workspace/a; echo x >> /workspace/b; done";
    const made = await post(server, id, "processes", { command: script });
    expect(made.status).toBe(201);
    const lineCount = async (sandbox: string, file: string) =>
      Number((await server.exec(sandbox, `wc -l < /workspace/${file}`)).body.stdout);
    await until("it writes", async () => (await lineCount(id, "b")) > 100);
    const saved = await checkpoint(server, id);
    const after = await lineCount(id, "b");
    await until("it continues", async () => (await lineCount(id, "b")) > after);
    const fork = await server.create({ from: saved });
    const [a, b] = [await lineCount(fork, "a"), await lineCount(fork, "b")];
    expect(b).toBeGreaterThan(100);
    expect([0, 1]).toContain(a - b);
    await Promise.all([destroy(id), destroy(fork)]);
  });

  it("[H23] a change of metadata at any moment of pause, start, checkpoint, restore and fork is never lost", async () => {
    const id = await filled({ metadata: { first: "0" } }, 1000);
    const saved = await checkpoint(server, id);
    let over = false;
    const acknowledged = new Map<string, string>();
    const moments = new Set<string>();
    const writer = async (key: string) => {
      for (let n = 1; !over; n += 1) {
        const change = { [key]: String(n), [`${key}-${n % 7}`]: String(n) };
        const { status, body } = await server.call("PATCH", path(id, "/metadata"), change);
        expect(status, JSON.stringify(body)).toBe(200);
        for (const [name, value] of Object.entries(change)) acknowledged.set(name, value);
        moments.add(String((await server.call("GET", path(id))).body.state));
      }
    };
    const writing = Promise.all([writer("one"), writer("two")]);
    const forks: { known: Map<string, string>; id: string }[] = [];
    for (let round = 0; round < 4; round += 1) {
      await post(server, id, "pause");
      await post(server, id, "start");
      await restore(server, id, saved);
      const known = new Map(acknowledged);
      const another = await checkpoint(server, id);
      forks.push({ known, id: await server.create({ from: another }) });
    }
    over = true;
    await writing;
    expect([...moments]).toEqual(expect.arrayContaining(["paused", "running", "starting"]));
    expect(acknowledged.size).toBeGreaterThan(8);
    const { body } = await server.call("GET", path(id, "/metadata"));
    expect(body.metadata).toMatchObject(Object.fromEntries(acknowledged));
    await until("the copy inside has it too", async () => {
      const { stdout } = (await server.exec(id, "cat /run/berth/metadata.json")).body;
      const copy = JSON.parse(String(stdout)) as { version: number };
      return copy.version === body.version;
    });
    for (const fork of forks) {
      const its = (await server.call("GET", path(fork.id, "/metadata"))).body.metadata;
      for (const [name, value] of fork.known) {
        const number = Number((its as Record<string, string>)[name]);
        expect(number, name).toBeGreaterThanOrEqual(Number(value));
      }
    }
    await Promise.all([destroy(id), ...forks.map((fork) => destroy(fork.id))]);
  });
});
