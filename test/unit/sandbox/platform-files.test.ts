/** Files that do not outlive their container, as on the platform: discarded by a pause, saved for a limited time. */
import { describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import type { CreateInput } from "../../../src/protocol/sandbox.ts";
import { advanceClock, killed, startSandbox, useFakeClock } from "./harness.ts";

useFakeClock();

const day = 24 * 60 * 60_000;
const fileBytes = new TextEncoder().encode("one");

async function running({ keepsFiles = false, savesFiles = true }, call: CreateInput = {}) {
  const { berth, local, id, sandbox, container } = await startSandbox({ start: false, ...call });
  Object.assign(container, { keepsFiles, savesFiles });
  await berth.evict(id);
  await sandbox.start();
  await sandbox.writeFile("a.txt", fileBytes);
  const has = () =>
    sandbox.stat("a.txt").then(
      ({ size }) => size === 3,
      () => false,
    );
  return { berth, local, id, sandbox, has, container };
}

describe("a pause that discards files", () => {
  it.each([true, false])(
    "[H27] saves nothing, and the next start begins from the image (snapshots: %s)",
    async (savesFiles) => {
      const { sandbox, has, container } = await running({ savesFiles });
      expect(await has()).toBe(true);
      expect(await sandbox.pause({ discardFiles: true })).toMatchObject({
        state: "paused",
        reason: "requested",
      });
      expect(container.agent).toBeUndefined();
      expect(container.snapshots.size).toBe(0);
      expect(container.calls.filter((verb) => verb.startsWith("snapshot"))).toEqual([]);
      expect((await sandbox.checkpoints()).checkpoints).toEqual([]);
      expect(await sandbox.start()).toMatchObject({ state: "running", files: "image" });
      expect(await has()).toBe(false);
    },
  );

  it("[H27] keeps earlier checkpoints for a restore", async () => {
    const { sandbox, has } = await running({});
    const made = await sandbox.makeCheckpoint();
    await sandbox.pause({ discardFiles: true });
    expect((await sandbox.start()).files).toBe("image");
    expect(await has()).toBe(false);
    expect((await sandbox.restore(made.id)).files).toBe("snapshot");
    expect(await has()).toBe(true);
  });

  it("[H27] keeps the files where they outlive their container", async () => {
    const { sandbox, has } = await running({ keepsFiles: true });
    await sandbox.pause({ discardFiles: true });
    expect((await sandbox.start()).files).toBe("kept");
    expect(await has()).toBe(true);
  });

  it("[H27] is gated like every pause", async () => {
    const { sandbox, container } = await running({});
    await sandbox.acquireLease({ holder: "me" });
    await expect(sandbox.pause({ discardFiles: true })).rejects.toMatchObject({
      code: "lease_held",
    });
    expect(container.agent).toBeDefined();
    expect((await sandbox.pause({ discardFiles: true, force: true })).state).toBe("paused");
  });

  it("[H1] a pause that does not discard files saves them first", async () => {
    const { sandbox, has, container } = await running({});
    await sandbox.pause();
    expect(container.calls.map((verb) => verb.split(" ")[0]).slice(-2)).toEqual([
      "snapshot",
      "destroy",
    ]);
    expect((await sandbox.start()).files).toBe("snapshot");
    expect(await has()).toBe(true);
  });
});

describe("a checkpoint of the platform", () => {
  const expired = { code: "checkpoint_expired", facts: { expiredAt: expect.any(String) } };

  it("[H28] expires for get, restore and fork at its time and not before", async () => {
    const { sandbox, local } = await running({});
    const made = await sandbox.makeCheckpoint();
    expect(made.expiresAt).toBe(new Date(Date.now() + limits.checkpointLifeMs).toISOString());
    advanceClock(limits.checkpointLifeMs - 1);
    expect(await sandbox.checkpoint(made.id)).toEqual(made);
    expect(await local.create({ from: made.id, start: false })).toMatchObject({ state: "paused" });
    advanceClock(1);
    const { incarnation } = await sandbox.get();
    await expect(sandbox.checkpoint(made.id)).rejects.toMatchObject(expired);
    await expect(sandbox.restore(made.id)).rejects.toMatchObject(expired);
    await expect(local.create({ from: made.id })).rejects.toMatchObject(expired);
    expect(await sandbox.get()).toMatchObject({ state: "running", incarnation });
  });

  it("[H28] gets its full time again with each restore, but not with a fork", async () => {
    const { sandbox, has, local } = await running({});
    const made = await sandbox.makeCheckpoint();
    advanceClock(20 * day);
    expect((await sandbox.restore(made.id)).files).toBe("snapshot");
    const renewed = new Date(Date.now() + limits.checkpointLifeMs).toISOString();
    expect((await sandbox.checkpoint(made.id)).expiresAt).toBe(renewed);
    advanceClock(20 * day);
    await local.create({ from: made.id, start: false });
    expect((await sandbox.checkpoint(made.id)).expiresAt).toBe(renewed);
    advanceClock(10 * day);
    await expect(sandbox.restore(made.id)).rejects.toMatchObject(expired);
    expect(await has()).toBe(true);
  });

  it("[H28] does not start a lost container once it has expired", async () => {
    const { sandbox, container } = await running({});
    await sandbox.makeCheckpoint();
    const exit = () => container.exitWith(killed);
    exit();
    advanceClock(limits.agentProbeAfterMs);
    await sandbox.exec({ command: "true" });
    expect((await sandbox.get()).files).toBe("snapshot");
    advanceClock(limits.checkpointLifeMs);
    exit();
    await sandbox.exec({ command: "true" });
    expect((await sandbox.get()).files).toBe("image");
  });

  it("[H28] that has expired does not count, can be deleted, and is remembered for a while", async () => {
    const { sandbox, container } = await running({}, { checkpointEveryMs: null });
    const { checkpointsMax, checkpointLifeMs } = limits;
    const first = await sandbox.makeCheckpoint();
    for (let n = 1; n < checkpointsMax; n++) await sandbox.makeCheckpoint();
    await expect(sandbox.makeCheckpoint()).rejects.toMatchObject({ code: "too_many" });
    advanceClock(checkpointLifeMs);
    const second = await sandbox.makeCheckpoint();
    await expect(sandbox.checkpoint(first.id)).rejects.toMatchObject(expired);
    expect(await sandbox.removeCheckpoint(first.id)).toMatchObject({ id: first.id });
    await expect(sandbox.checkpoint(first.id)).rejects.toMatchObject({ code: "not_found" });
    for (let n = 1; n < checkpointsMax; n++) await sandbox.makeCheckpoint();
    advanceClock(checkpointLifeMs);
    await sandbox.makeCheckpoint();
    await expect(sandbox.checkpoint(second.id)).rejects.toMatchObject(expired);
    await vi.waitFor(() =>
      expect(container.snapshots.size).toBeLessThanOrEqual(checkpointsMax + 1),
    );
  });
});
