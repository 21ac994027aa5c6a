/** Calls that wait for a lease, their turn or a container, by a wall clock that stands still. */
import { expect, it } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { soon } from "../plan-participant/fake-sandbox.ts";
import { advanceClock, startSandbox, useFakeClock } from "./harness.ts";

useFakeClock();

it("[Q8] ends a call when its wait limit is over, even if its place in the queue lasts a moment longer", async () => {
  const { sandbox } = await startSandbox();
  await sandbox.acquireLease({ holder: "one" });
  const timedOut = { code: "lease_wait_timeout" };
  await expect(sandbox.acquireLease({ waitMs: 50 })).rejects.toMatchObject(timedOut);
  expect((await sandbox.lease()).waiterCount).toBe(0);
  // A caller that asked for a place keeps it.
  const queued = await sandbox.acquireLease({ waitMs: 50, queueMs: 60_000 });
  expect(queued).toMatchObject({ position: 0, ticket: expect.any(String) });
  const { ticket } = queued as { ticket: string };
  expect(await sandbox.acquireLease({ waitMs: 50, ticket })).toMatchObject({ ticket, position: 0 });
});

it("[H29] after a pause that timed out, the next pause ends its own container although the first one still has no result", async () => {
  const { berth, id, sandbox, container } = await startSandbox();
  const stops = () => container.calls.filter((verb) => verb === "destroy keep");
  container.fault = { verb: "destroy", hold: true };
  const timedOut = sandbox.pause();
  await soon(() => expect(stops()).toHaveLength(1));
  advanceClock(limits.pauseTimeoutMs);
  await berth.ringAlarm(id);
  expect(await timedOut).toMatchObject({ state: "failed", reason: "pause_timed_out" });

  container.fault = undefined;
  expect(await sandbox.start()).toMatchObject({ state: "running" });
  void sandbox.pause();
  await soon(async () => expect(await sandbox.get()).toMatchObject({ state: "paused" }));
  expect([stops().length, container.agent]).toEqual([2, undefined]);
  container.release();
});

it("[H13] callers that wait for their turn make no more checkpoints than the limit allows", async () => {
  const { sandbox } = await startSandbox();
  for (let n = 1; n < limits.checkpointsMax; n++) await sandbox.makeCheckpoint();
  const lease = await sandbox.acquireLease({ holder: "somebody" });
  const token = "token" in lease ? lease.token : "";
  const waiting = [1, 2, 3].map(() =>
    sandbox.makeCheckpoint({}, { waitMs: 20_000 }).catch((error: { code: string }) => error.code),
  );
  await soon(async () =>
    expect(await sandbox.lease()).toMatchObject({ waiterCount: waiting.length }),
  );
  await sandbox.releaseLease(token);
  const made = await Promise.all(waiting);
  expect(made.filter((result) => result === "too_many")).toHaveLength(2);
  expect((await sandbox.checkpoints()).checkpoints).toHaveLength(limits.checkpointsMax);
  expect(await sandbox.lease()).toMatchObject({ state: "free", waiterCount: 0 });
});
