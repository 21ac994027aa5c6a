/** What a sandbox does by itself: saves checkpoints, removes old ones, and ends after a long pause. */
import { describe, expect, it } from "vitest";
import type { SandboxApi } from "../../../src/protocol/api.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { advanceClock, startSandbox, useFakeClock } from "./harness.ts";

useFakeClock();

const everyMs = 60_000;

async function checkpointsOf(box: SandboxApi) {
  return (await box.checkpoints()).checkpoints;
}

async function removedOf(box: SandboxApi): Promise<string[]> {
  const { events } = await box.events({ limit: 1000 });
  return events.flatMap(({ event }) =>
    event.type === "checkpoint" && event.what === "removed" ? [event.id] : [],
  );
}

describe("automatic checkpoints", () => {
  it("[H32] are saved each interval, also after an eviction and under a lease", async () => {
    const { berth, id, sandbox } = await startSandbox({ checkpointEveryMs: everyMs });
    await sandbox.acquireLease({ holder: "me", ttlMs: 300_000 });
    advanceClock(everyMs - 1);
    await berth.ringAlarm(id);
    expect(await checkpointsOf(sandbox)).toEqual([]);
    advanceClock(1);
    await berth.ringAlarm(id);
    expect(await checkpointsOf(sandbox)).toMatchObject([{ automatic: true }]);
    await berth.evict(id);
    advanceClock(everyMs - 1);
    await berth.ringAlarm(id);
    expect(await checkpointsOf(sandbox)).toHaveLength(1);
    advanceClock(1);
    await berth.ringAlarm(id);
    expect(await checkpointsOf(sandbox)).toHaveLength(2);
  });

  it("[H32] wait after a failure, and stop when they are turned off", async () => {
    const { berth, id, sandbox, container } = await startSandbox({
      ...{ checkpointEveryMs: everyMs, onIdle: "none" },
    });
    container.fault = { verb: "snapshot", fail: "unavailable", times: 1 };
    advanceClock(everyMs);
    await berth.ringAlarm(id);
    expect(await checkpointsOf(sandbox)).toEqual([]);
    advanceClock(limits.automaticCheckpointRetryMs);
    await berth.ringAlarm(id);
    expect(await checkpointsOf(sandbox)).toHaveLength(1);
    await sandbox.patchSettings({ checkpointEveryMs: null });
    advanceClock(10 * everyMs);
    await berth.ringAlarm(id);
    expect(await checkpointsOf(sandbox)).toHaveLength(1);
  });

  it("[H32] are the default where files do not outlive their container", async () => {
    const { berth, id, sandbox, container } = await startSandbox({ start: false, onIdle: "none" });
    Object.assign(container, { keepsFiles: false, savesFiles: true });
    await berth.evict(id);
    await sandbox.start();
    advanceClock(limits.checkpointEveryMs);
    await berth.ringAlarm(id);
    expect(await checkpointsOf(sandbox)).toMatchObject([{ automatic: true }]);
  });

  it("[H33] remove only automatic ones, unless `keepCheckpoints` says how many are kept", async () => {
    const { berth, id, sandbox } = await startSandbox({
      ...{ checkpointEveryMs: everyMs, onIdle: "none" },
    });
    const own = await sandbox.makeCheckpoint({ name: "mine" });
    for (let n = 0; n < limits.automaticCheckpointsMax + 2; n += 1) {
      advanceClock(everyMs);
      await berth.ringAlarm(id);
    }
    const kept = await checkpointsOf(sandbox);
    expect(kept).toHaveLength(limits.automaticCheckpointsMax + 1);
    expect(kept.at(-1)?.id).toBe(own.id);
    await sandbox.patchSettings({ keepCheckpoints: 2 });
    advanceClock(1);
    const newest = await sandbox.makeCheckpoint({ name: "newest" });
    const left = await checkpointsOf(sandbox);
    expect(left).toMatchObject([{ id: newest.id }, { id: kept[0]?.id }]);
    expect(await removedOf(sandbox)).toContain(own.id);
  });

  it("[H33] with `keepCheckpoints` the one beyond the limit is not refused", async () => {
    const { sandbox } = await startSandbox({ keepCheckpoints: limits.checkpointsMax });
    for (let n = 0; n <= limits.checkpointsMax; n += 1) {
      advanceClock(1);
      await sandbox.makeCheckpoint({ name: `c${n}` });
    }
    const kept = await checkpointsOf(sandbox);
    expect(kept).toHaveLength(limits.checkpointsMax);
    expect([kept[0]?.name, kept.at(-1)?.name]).toEqual([`c${limits.checkpointsMax}`, "c1"]);
  });
});

describe("a paused sandbox", () => {
  it("[ST4] is destroyed after `destroyPausedAfterMs`, counted from its pause", async () => {
    const { berth, id, sandbox } = await startSandbox({ destroyPausedAfterMs: everyMs });
    advanceClock(2 * everyMs);
    await berth.ringAlarm(id);
    expect((await sandbox.get()).state).toBe("running");
    await sandbox.pause();
    advanceClock(everyMs - 1);
    await berth.ringAlarm(id);
    expect((await sandbox.get()).state).toBe("paused");
    await sandbox.patchSettings({ destroyPausedAfterMs: everyMs - 1 });
    await berth.ringAlarm(id);
    expect(await sandbox.get()).toMatchObject({ state: "destroyed", reason: "paused_too_long" });
  });
});

describe("the environment of a running sandbox", () => {
  it("[ST2] follows the settings, and waits for the next start if the agent does not take it", async () => {
    const { sandbox, container } = await startSandbox({ env: { A: "1" } });
    await sandbox.patchSettings({ env: { A: null, B: "2" } });
    expect(container.agent?.env).toEqual({ B: "2" });
    container.respond = (request) =>
      request.url.endsWith("/services") ? new Response("{}", { status: 404 }) : undefined;
    const changed = await sandbox.patchSettings({ env: { C: "3" } });
    expect(changed).toMatchObject({ atNextStart: ["env"] });
    container.respond = undefined;
    await sandbox.pause();
    await sandbox.start();
    expect(container.agent?.env).toEqual({ B: "2", C: "3" });
  });
});
