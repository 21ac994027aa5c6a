/** Files where they do not outlive their container, as on the platform: discarded by a pause, saved for a time. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import type { CreateInput } from "../../../src/protocol/sandbox.ts";
import { FakeBerth } from "../../fakes/berth.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: Date.now() }));
afterEach(() => vi.useRealTimers());

const later = (ms: number) => vi.setSystemTime(Date.now() + ms);
const day = 24 * 60 * 60_000;
const one = new TextEncoder().encode("one");

async function running({ keepsFiles = false, savesFiles = true }, call: CreateInput = {}) {
  const berth = new FakeBerth();
  const local = berth.bind({ tenant: "local" });
  const { id } = await local.create({ start: false, ...call });
  Object.assign(berth.machine(id), { keepsFiles, savesFiles });
  await berth.evict(id);
  const box = local.sandbox(id);
  await box.start();
  await box.writeFile("a.txt", one);
  const has = () =>
    box.stat("a.txt").then(
      ({ size }) => size === 3,
      () => false,
    );
  return { berth, local, id, box, has, machine: berth.machine(id) };
}

describe("a pause that discards files", () => {
  it.each([true, false])(
    "[H27] saves nothing, and the next life begins from the image (snapshots: %s)",
    async (savesFiles) => {
      const { box, has, machine } = await running({ savesFiles });
      expect(await has()).toBe(true);
      expect(await box.pause({ discardFiles: true })).toMatchObject({
        state: "paused",
        reason: "requested",
      });
      expect(machine.agent).toBeUndefined();
      expect(machine.snapshots.size).toBe(0);
      expect(machine.calls.filter((verb) => verb.startsWith("snapshot"))).toEqual([]);
      expect((await box.checkpoints()).checkpoints).toEqual([]);
      expect(await box.start()).toMatchObject({ state: "running", files: "image" });
      expect(await has()).toBe(false);
    },
  );

  it("[H27] leaves what was saved before to who restores it", async () => {
    const { box, has } = await running({});
    const made = await box.makeCheckpoint();
    await box.pause({ discardFiles: true });
    expect((await box.start()).files).toBe("image");
    expect(await has()).toBe(false);
    expect((await box.restore(made.id)).files).toBe("snapshot");
    expect(await has()).toBe(true);
  });

  it("[H27] keeps them where they are kept anyway", async () => {
    const { box, has } = await running({ keepsFiles: true });
    await box.pause({ discardFiles: true });
    expect((await box.start()).files).toBe("kept");
    expect(await has()).toBe(true);
  });

  it("[H27] is gated as every pause is", async () => {
    const { box, machine } = await running({});
    await box.acquireLease({ holder: "me" });
    await expect(box.pause({ discardFiles: true })).rejects.toMatchObject({ code: "lease_held" });
    expect(machine.agent).toBeDefined();
    expect((await box.pause({ discardFiles: true, force: true })).state).toBe("paused");
  });

  it("[H1] one that does not, saves them first", async () => {
    const { box, has, machine } = await running({});
    await box.pause();
    expect(machine.calls.map((verb) => verb.split(" ")[0]).slice(-2)).toEqual([
      "snapshot",
      "destroy",
    ]);
    expect((await box.start()).files).toBe("snapshot");
    expect(await has()).toBe(true);
  });
});

describe("a checkpoint of the platform", () => {
  const expired = { code: "checkpoint_expired", facts: { expiredAt: expect.any(String) } };

  it("[H28] is told as over by a look, a restore and a fork once its time is over, and not before", async () => {
    const { box, local } = await running({});
    const made = await box.makeCheckpoint();
    expect(made.expiresAt).toBe(new Date(Date.now() + limits.checkpointLifeMs).toISOString());
    later(limits.checkpointLifeMs - 1);
    expect(await box.checkpoint(made.id)).toEqual(made);
    expect(await local.create({ from: made.id, start: false })).toMatchObject({ state: "paused" });
    later(1);
    const { incarnation } = await box.get();
    await expect(box.checkpoint(made.id)).rejects.toMatchObject(expired);
    await expect(box.restore(made.id)).rejects.toMatchObject(expired);
    await expect(local.create({ from: made.id })).rejects.toMatchObject(expired);
    expect(await box.get()).toMatchObject({ state: "running", incarnation });
  });

  it("[H28] has all of its time again after each restore, and a fork gives it none", async () => {
    const { box, has, local } = await running({});
    const made = await box.makeCheckpoint();
    later(20 * day);
    expect((await box.restore(made.id)).files).toBe("snapshot");
    const renewed = new Date(Date.now() + limits.checkpointLifeMs).toISOString();
    expect((await box.checkpoint(made.id)).expiresAt).toBe(renewed);
    later(20 * day);
    await local.create({ from: made.id, start: false });
    expect((await box.checkpoint(made.id)).expiresAt).toBe(renewed);
    later(10 * day);
    await expect(box.restore(made.id)).rejects.toMatchObject(expired);
    expect(await has()).toBe(true);
  });

  it("[H28] is not what a lost container begins from once it is over", async () => {
    const { box, machine } = await running({});
    await box.makeCheckpoint();
    const die = () => machine.die({ exitCode: null, signal: "SIGKILL", reason: "exited" });
    die();
    later(limits.agentQuietMs);
    await box.exec({ command: "true" });
    expect((await box.get()).files).toBe("snapshot");
    later(limits.checkpointLifeMs);
    die();
    await box.exec({ command: "true" });
    expect((await box.get()).files).toBe("image");
  });

  it("[H28] that is over takes no place of others, can be deleted, and is remembered so long", async () => {
    const { box, machine } = await running({});
    const { checkpointsMax, checkpointLifeMs } = limits;
    const first = await box.makeCheckpoint();
    for (let n = 1; n < checkpointsMax; n++) await box.makeCheckpoint();
    await expect(box.makeCheckpoint()).rejects.toMatchObject({ code: "too_many" });
    later(checkpointLifeMs);
    const second = await box.makeCheckpoint();
    await expect(box.checkpoint(first.id)).rejects.toMatchObject(expired);
    expect(await box.removeCheckpoint(first.id)).toMatchObject({ id: first.id });
    await expect(box.checkpoint(first.id)).rejects.toMatchObject({ code: "not_found" });
    for (let n = 1; n < checkpointsMax; n++) await box.makeCheckpoint();
    later(checkpointLifeMs);
    await box.makeCheckpoint();
    await expect(box.checkpoint(second.id)).rejects.toMatchObject(expired);
    await vi.waitFor(() => expect(machine.snapshots.size).toBeLessThanOrEqual(checkpointsMax + 1));
  });
});
