import { describe, expect, it } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { eventually } from "../../contract/sandbox/world.ts";
import * as api from "../api.ts";
import { call, createSandbox, json, keys, pathOf, stubOf } from "../calls.ts";
import { containerOf } from "../container.ts";

const save = (id: string, body = {}, headers = {}) =>
  call("POST", pathOf(id, "/checkpoints"), { body, headers });
const listed = async (id: string) =>
  (await api.request("GET", id, "/checkpoints")).checkpoints as { id: string }[];
const calls = async (id: string) => (await api.facts(id)).calls;

describe("checkpoints", () => {
  it("[H6] are made, listed newest first, read and removed with their trees", async () => {
    const id = await createSandbox();
    const first = await save(id, { name: "first" });
    expect(first.status).toBe(201);
    const made = await json(first);
    expect(made).toMatchObject({ name: "first", bytes: 1, expiresAt: null });
    expect(made.id.startsWith(`${id}.`)).toBe(true);
    const second = await json(save(id));
    expect((await listed(id)).map((row) => row.id)).toEqual([second.id, made.id]);
    expect(await api.request("GET", id, `/checkpoints/${made.id}`)).toEqual(made);
    expect((await call("DELETE", pathOf(id, `/checkpoints/${made.id}`))).status).toBe(200);
    expect((await call("DELETE", pathOf(id, `/checkpoints/${made.id}`))).status).toBe(404);
    expect((await listed(id)).map((row) => row.id)).toEqual([second.id]);
    await eventually(async () => expect((await calls(id)).join()).toContain("remove c"));
    const events = (await api.events(id)).filter(({ type }) => type === "checkpoint");
    expect(events.map(({ what }) => what)).toEqual(["made", "made", "removed"]);
  });

  it("[H7] while one is made no gated call runs, no call waits for ever, and the silent agent does not count as lost", async () => {
    const id = await createSandbox();
    const { incarnation } = await api.get(id);
    await containerOf(id).fault({ verb: "snapshot", hold: true });
    const saving = save(id);
    await eventually(async () => expect((await calls(id)).join()).toContain("snapshot"));
    let ran = false;
    const waiting = api.exec(id, "echo after").finally(() => {
      ran = true;
    });
    const lease = call("POST", pathOf(id, "/lease"), { body: { holder: "eager" } });
    expect((await lease).status).toBe(423);
    expect((await call("GET", pathOf(id))).status).toBe(200);
    expect(ran).toBe(false);
    await containerOf(id).release();
    expect((await saving).status).toBe(201);
    expect(await json(waiting)).toMatchObject({ stdout: "after\n", incarnation });
  });

  it("[H8] one during a command, or without the lease, is refused and leaves nothing", async () => {
    const id = await createSandbox();
    const running = api.exec(id, "sleep 3");
    await eventually(async () => expect((await api.facts(id)).running).toBe(1));
    expect(await json(save(id))).toMatchObject({ error: { code: "lease_pending" } });
    await running;
    const { token } = await api.acquireLease(id, { holder: "me" });
    expect(await json(save(id))).toMatchObject({ error: { code: "lease_held", holder: "me" } });
    expect(await listed(id)).toEqual([]);
    expect((await save(id, {}, { "berth-lease": token })).status).toBe(201);
  });

  it("[H9] a crash while one is made leaves no row and no tree, and the sandbox continues", async () => {
    const id = await createSandbox();
    await containerOf(id).fault({ verb: "snapshot", hold: true });
    const saving = save(id).catch(() => "cut");
    await eventually(async () => expect((await calls(id)).join()).toContain("snapshot"));
    await api.crash(stubOf(id));
    await containerOf(id).release();
    await saving;
    expect(await json(api.exec(id, "echo on"))).toMatchObject({ stdout: "on\n" });
    await eventually(async () => expect((await calls(id)).join()).toContain("remove c"));
    await eventually(async () => expect(await listed(id)).toEqual([]));
  });

  it("[H10] one that fails leaves nothing and reports it", async () => {
    const id = await createSandbox();
    await containerOf(id).fault({ verb: "snapshot", fail: "unavailable", times: 1 });
    expect((await save(id)).status).toBe(503);
    expect(await listed(id)).toEqual([]);
    expect((await save(id)).status).toBe(201);
  });

  it("[H11] a restore starts a new incarnation from it, also of a paused or failed sandbox; old handles are stale", async () => {
    const id = await createSandbox();
    const made = await json(save(id));
    const before = await api.get(id);
    const process = await api.request("POST", id, "/processes", { command: "sleep 60" });
    const restore = () => call("POST", pathOf(id, `/checkpoints/${made.id}/restore`));
    const after = await json(restore());
    expect(after).toMatchObject({ state: "running", files: "snapshot" });
    expect(after.incarnation).not.toBe(before.incarnation);
    const stale = call("GET", pathOf(id, `/processes/${process.id}`));
    expect(await json(stale)).toMatchObject({ error: { code: "stale_handle" } });
    expect((await call("POST", pathOf(id, "/pause"))).status).toBe(200);
    expect(await json(restore())).toMatchObject({ state: "running", files: "snapshot" });
    await containerOf(id).exit();
    await json(api.exec(id, "true"));
    expect(await json(restore())).toMatchObject({ state: "running", files: "snapshot" });
  });

  it("[H25] a restore returns when the restored incarnation runs, and fails if that fails", async () => {
    const id = await createSandbox();
    const made = await json(save(id, { name: "good" }));
    const restore = () => api.request("POST", id, `/checkpoints/${made.id}/restore`);
    const recorded = async () => (await api.events(id)).map(({ state, what }) => state ?? what);
    await containerOf(id).fault({ verb: "start", hold: true });
    const restoring = restore();
    await eventually(async () => expect((await recorded()).at(-1)).toBe("starting"));
    expect(await recorded()).not.toContain("restored");
    await containerOf(id).release();
    expect(await restoring).toMatchObject({ state: "running" });
    expect((await recorded()).slice(-3)).toEqual(["starting", "running", "restored"]);
    const [tree = ""] = (await calls(id)).filter((verb) => verb.startsWith("snapshot "));
    await containerOf(id).removeSnapshot(tree.slice("snapshot ".length));
    expect(await restore()).toMatchObject({
      error: { code: "start_failed", reason: "snapshot_missing" },
    });
    expect((await recorded()).slice(-2)).toEqual(["starting", "failed"]);
  });

  it("[H26] one that is removed before its restore reads it keeps its tree until then", async () => {
    const id = await createSandbox();
    const made = await json(save(id));
    await containerOf(id).fault({ verb: "start", hold: true });
    const before = (await api.facts(id)).starts.length;
    const restoring = api.request("POST", id, `/checkpoints/${made.id}/restore`);
    await eventually(async () =>
      expect((await api.facts(id)).starts.length).toBeGreaterThan(before),
    );
    expect((await call("DELETE", pathOf(id, `/checkpoints/${made.id}`))).status).toBe(200);
    expect(await listed(id)).toEqual([]);
    await containerOf(id).release();
    expect(await restoring).toMatchObject({ state: "running", files: "snapshot" });
    await eventually(async () => expect((await calls(id)).join()).toContain("remove c"));
  });

  it("[H12] a fork takes the files, and by default metadata, environment and policy", async () => {
    const id = await createSandbox({
      metadata: { owner: "ci", stage: "test" },
      env: { A: "1", B: "2" },
      idleTimeoutMs: 5_000,
      onIdle: "none",
    });
    await call("PATCH", pathOf(id, "/metadata"), { body: { stage: "late" } });
    const made = await json(save(id));
    // The tree is on the machine of the origin; the fork's machine needs it as well.
    const [row] = (await calls(id)).filter((verb) => verb.startsWith("snapshot "));
    const fork = await json(
      call("POST", "/v1/sandboxes", {
        body: { from: made.id, start: false, metadata: { owner: "me" }, env: { B: "3" } },
      }),
    );
    expect(fork).toMatchObject({
      state: "paused",
      metadata: { owner: "me", stage: "late" },
      idleTimeoutMs: 5_000,
      onIdle: "none",
    });
    await containerOf(fork.id).adopt(row?.slice("snapshot ".length) ?? "");
    expect(await json(api.exec(fork.id, "printenv B"))).toMatchObject({ stdout: "3\n" });
    expect(await json(api.exec(fork.id, "printenv A"))).toMatchObject({ stdout: "1\n" });
    expect(await api.get(fork.id)).toMatchObject({ files: "snapshot" });
    const foreign = call("POST", "/v1/sandboxes", { key: keys.other, body: { from: made.id } });
    expect((await foreign).status).toBe(404);
  });

  it("[H13] their number is limited, an unknown one is not found, and destroy removes all", async () => {
    const id = await createSandbox();
    const other = await createSandbox();
    const foreign = await json(save(other));
    for (const name of [foreign.id, `${id}.000000000000`]) {
      expect((await call("GET", pathOf(id, `/checkpoints/${name}`))).status).toBe(404);
    }
    expect((await call("GET", pathOf(id, "/checkpoints/no"))).status).toBe(400);
    for (let n = 0; n < limits.checkpointsMax; n++) expect((await save(id)).status).toBe(201);
    expect(await json(save(id))).toMatchObject({ error: { code: "too_many" } });
    expect((await call("DELETE", pathOf(id))).status).toBe(200);
    const removed = (await calls(id)).filter((verb) => verb.startsWith("remove c"));
    expect(removed).toHaveLength(limits.checkpointsMax);
  });
});
