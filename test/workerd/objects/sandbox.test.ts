import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { eventually } from "../../contract/sandbox/world.ts";
import * as api from "../api.ts";
import { call, createSandbox, json, pathOf, stubOf } from "../calls.ts";
import { containerOf } from "../container.ts";
import { alarmOf } from "../world.ts";

afterEach(() => vi.useRealTimers());

describe("a sandbox object", () => {
  it("[S1] keeps a created sandbox through a crash before its container was requested", async () => {
    const created = await call("POST", "/v1/sandboxes", { body: {} });
    expect(created.status).toBe(201);
    const { id } = await json(created);
    expect(created.headers.get("location")).toBe(pathOf(id));
    await eventually(async () => expect(await api.state(id)).toBe("running"));

    const held = await createSandbox();
    await containerOf(held).fault({ verb: "start", hold: true });
    await runInDurableObject(stubOf(held), (_object, state) => {
      // As if the process had crashed after the commit: the row stays, memory is gone.
      state.storage.sql.exec(
        "UPDATE sandbox SET state = json_object('name','starting','since',?,'until',?,'lookAt',?,'start',json_object('startId','aaaaaaaaaaaaaaaa','secret','s'))",
        Date.now(),
        Date.now() + limits.startTimeoutMs,
        Date.now(),
      );
      state.storage.setAlarm(Date.now());
    });
    await containerOf(held).release();
    await evictDurableObject(stubOf(held));
    await runDurableObjectAlarm(stubOf(held));
    await eventually(async () => expect(await api.state(held)).toBe("running"));
    expect((await api.facts(held)).starts).toContain("start aaaaaaaaaaaaaaaa");
  });

  it("[S9] lets calls on a starting sandbox wait for the one container", async () => {
    const id = await createSandbox();
    await containerOf(id).exit();
    await containerOf(id).fault({ verb: "start", hold: true });
    await evictDurableObject(stubOf(id));
    const waiting = Array.from({ length: 20 }, (_, n) => api.exec(id, `echo ${n}`));
    await eventually(async () => expect((await api.facts(id)).starts).toHaveLength(2));
    expect(await api.state(id)).toBe("starting");
    await containerOf(id).release();
    const answers = await Promise.all(waiting.map(json));
    expect(answers.map((answer) => answer.stdout)).toEqual(
      Array.from({ length: 20 }, (_, n) => `${n}\n`),
    );
    expect((await api.facts(id)).starts).toHaveLength(2);
  });

  it("[S6] restarts a container that exited unnoticed, with its files", async () => {
    const id = await createSandbox();
    expect(await json(api.exec(id, "true"))).toMatchObject({ exitCode: 0 });
    await containerOf(id).exit();
    await evictDurableObject(stubOf(id));
    expect(await json(api.exec(id, "true"))).toMatchObject({ exitCode: 0 });
    expect(await api.get(id)).toMatchObject({ files: "kept" });
  });

  it("[S6] notices before a call that a container has exited unnoticed while the object was awake", async () => {
    const id = await createSandbox();
    const exitUnnoticed = async () => {
      expect(await json(api.exec(id, "true"))).toMatchObject({ exitCode: 0 });
      await containerOf(id).exit();
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + limits.agentProbeAfterMs });
    };
    await exitUnnoticed();
    expect(await json(api.exec(id, "echo again"))).toMatchObject({ stdout: "again\n" });
    await exitUnnoticed();
    const { starts } = await api.facts(id);
    expect(await api.request("POST", id, "/start")).toMatchObject({
      state: "running",
      files: "kept",
    });
    expect((await api.facts(id)).starts).toHaveLength(starts.length + 1);
  });

  it("[S10] interrupts a command whose container exits, and says what is unknown", async () => {
    const id = await createSandbox();
    const running = api.exec(id, "sleep 60");
    await eventually(async () => expect((await api.facts(id)).running).toBe(1));
    await containerOf(id).exit();
    const answer = await running;
    expect(answer.status).toBe(502);
    expect(await json(answer)).toMatchObject({
      error: { code: "operation_interrupted", admitted: "unknown" },
    });
    expect(await api.get(id)).toMatchObject({
      state: "failed",
      reason: "container_lost",
      restartable: true,
    });
    expect(await json(api.exec(id, "echo again"))).toMatchObject({ stdout: "again\n" });
  });

  it("[S3] accepts no response of another incarnation", async () => {
    const id = await createSandbox();
    await json(api.exec(id, "true"));
    await containerOf(id).replaceAgent();
    expect((await api.exec(id, "true")).status).toBe(502);
    expect((await api.facts(id)).ran).toEqual(["true"]);
    expect(await api.state(id)).toBe("failed");
  });

  it("[S4] destroys a sandbox during its start, and leaves no container", async () => {
    const id = await createSandbox();
    await containerOf(id).exit();
    await containerOf(id).fault({ verb: "start", hold: true });
    await evictDurableObject(stubOf(id));
    const waiting = api.exec(id, "true");
    await eventually(async () => expect((await api.facts(id)).starts).toHaveLength(2));
    const destroyed = call("DELETE", pathOf(id));
    expect((await waiting).status).toBe(410);
    await containerOf(id).release();
    expect(await json(destroyed)).toMatchObject({ state: "destroyed", reason: "requested" });
    expect(await api.facts(id)).toMatchObject({ alive: false, files: "none" });
  });

  it("[S5] keeps a tombstone for seven days, on which every other call fails with 410", async () => {
    const id = await createSandbox();
    for (let n = 0; n < 3; n++) {
      expect(await api.request("DELETE", id)).toMatchObject({ state: "destroyed" });
    }
    expect((await call("GET", pathOf(id))).status).toBe(200);
    expect(await json(api.exec(id, "true"))).toMatchObject({
      error: { code: "sandbox_destroyed" },
    });
    await runDurableObjectAlarm(stubOf(id));
    const due = await alarmOf(id);
    const since = Date.parse((await api.get(id)).stateSince);
    expect(due).toBe(since + limits.tombstoneMs);

    vi.useFakeTimers({ toFake: ["Date"], now: since + limits.tombstoneMs });
    expect(await runDurableObjectAlarm(stubOf(id))).toBe(true);
    expect((await call("GET", pathOf(id))).status).toBe(404);
    const left = await runInDurableObject(stubOf(id), async (_object, state) => [
      (await state.storage.list()).size,
      await state.storage.getAlarm(),
    ]);
    expect(left).toEqual([0, null]);
  });

  it("[S8] destroys by its alarm after the engine was unreachable", async () => {
    const id = await createSandbox();
    await containerOf(id).fault({ verb: "destroy", fail: "unavailable", times: 1 });
    const destroying = call("DELETE", pathOf(id));
    await eventually(async () => expect((await api.facts(id)).calls).toContain("destroy remove"));
    expect(await api.state(id)).toBe("destroying");
    expect(await api.facts(id)).toMatchObject({ alive: true });
    await runDurableObjectAlarm(stubOf(id));
    expect(await json(destroying)).toMatchObject({ state: "destroyed" });
    expect(await api.facts(id)).toMatchObject({ alive: false });
  });

  it("[S7] fails a sandbox whose start is refused, with the reason, and does not retry", async () => {
    const id = await createSandbox();
    await containerOf(id).exit();
    await containerOf(id).fault({ verb: "start", fail: "unsupported", times: 1 });
    await evictDurableObject(stubOf(id));
    const refused = await api.exec(id, "true");
    expect(refused.status).toBe(409);
    expect(await json(refused)).toMatchObject({
      error: { code: "start_failed", reason: "start_refused" },
    });
    expect((await api.exec(id, "true")).status).toBe(409);
    expect((await api.facts(id)).starts).toHaveLength(2);
  });

  it("[S11] looks the same after an eviction between any two calls", async () => {
    const id = await createSandbox({ env: { COLOUR: "blue" }, cwd: "/tmp" });
    for (let n = 0; n < 5; n++) {
      expect(await json(api.exec(id, "printenv COLOUR"))).toMatchObject({ stdout: "blue\n" });
      await evictDurableObject(stubOf(id));
      expect(await json(api.exec(id, "pwd"))).toMatchObject({ stdout: "/tmp\n" });
      await evictDurableObject(stubOf(id));
    }
    expect((await api.facts(id)).starts).toHaveLength(1);
    await api.request("DELETE", id);
    await evictDurableObject(stubOf(id));
    expect(await api.state(id)).toBe("destroyed");
  });

  it("[S12] has no alarm but its next deadline, and a GET starts nothing", async () => {
    const id = await createSandbox();
    const { stateSince, idleTimeoutMs } = await api.get(id);
    const idleAt = Date.parse(stateSince) + idleTimeoutMs;
    // Once the Directory knows that it runs, nothing rings earlier.
    await eventually(async () => expect(await alarmOf(id)).toBe(idleAt));
    await json(api.exec(id, "true"));
    expect(await alarmOf(id)).toBe(idleAt);
    expect(await runDurableObjectAlarm(stubOf(id))).toBe(true);
    // The command after it counts as a use.
    expect(await alarmOf(id)).toBeGreaterThanOrEqual(idleAt);
    const never = await createSandbox({ onIdle: "none" });
    await eventually(async () => {
      // While a report is in progress, the alarm is for that.
      await runDurableObjectAlarm(stubOf(never));
      expect(await alarmOf(never)).toBeNull();
    });
    await containerOf(id).exit();
    await evictDurableObject(stubOf(id));
    expect(await api.state(id)).toBe("failed");
    expect((await api.facts(id)).starts).toHaveLength(1);
  });
});
