/** One sandbox in memory whose wall clock is set while a lease or a wait runs, or before its alarm rings. */
import { afterEach, expect, it, vi } from "vitest";
import { soon } from "../plan-participant/fake-sandbox.ts";
import { advanceClock, startSandbox, useFakeClock } from "./harness.ts";

useFakeClock();
afterEach(() => void vi.useRealTimers());

const hour = 60 * 60_000;
const idle = { onIdle: "pause", idleTimeoutMs: 60_000 } as const;

it("[Q27] after a step back the lease of a dead holder ends at its time, and the first waiter gets it", async () => {
  const { berth, id, sandbox } = await startSandbox();
  await sandbox.acquireLease({ holder: "dead", ttlMs: 2_000 });
  advanceClock(-hour);
  const next = sandbox.acquireLease({ holder: "next", waitMs: 20_000 });
  await soon(async () => expect((await sandbox.lease()).waiterCount).toBe(1));
  advanceClock(2_000);
  await berth.ringAlarm(id);
  expect(await next).toMatchObject({ holder: "next" });
});

it("[Q27] a wait of a sandbox that was used while the clock was ten minutes ahead ends at its time", async () => {
  const { berth, id, sandbox } = await startSandbox();
  advanceClock(10 * 60_000);
  await sandbox.acquireLease({ holder: "dead", ttlMs: 2_000 });
  await berth.evict(id);
  advanceClock(-10 * 60_000);
  await expect(sandbox.acquireLease({ waitMs: 50 })).rejects.toMatchObject({
    code: "lease_wait_timeout",
  });
  advanceClock(2_000);
  await berth.ringAlarm(id);
  await soon(async () => expect((await sandbox.lease()).state).toBe("free"));
});

it.each([-hour, -10 * 60_000])(
  "[Q27] after a step of %i ms an alarm that rings early is set again for what is left",
  async (byMs) => {
    const { berth, id, sandbox } = await startSandbox();
    await sandbox.acquireLease({ holder: "dead", ttlMs: 5_000 });
    advanceClock(byMs);
    await berth.ringAlarm(id);
    expect(await sandbox.lease()).toMatchObject({ state: "held" });
    const leftMs = (berth.alarm(id) ?? 0) - Date.now();
    expect(leftMs).toBeGreaterThan(0);
    expect(leftMs).toBeLessThanOrEqual(5_000);
    advanceClock(5_000);
    await berth.ringAlarm(id);
    await soon(async () => expect(await sandbox.lease()).toMatchObject({ state: "free" }));
  },
);

it("[Q27] an instance that finds the wall clock behind sets its alarm again", async () => {
  const { berth, id, sandbox } = await startSandbox(idle);
  advanceClock(-hour);
  await berth.evict(id);
  await sandbox.get();
  expect((berth.alarm(id) ?? 0) - Date.now()).toBeLessThanOrEqual(idle.idleTimeoutMs);
});
