/** A pause whose container does not end in time is given up; its late result does not affect the next pause. */
import { expect, it, vi } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { soon } from "../plan-participant/fake-sandbox.ts";
import { startSandbox, useFakeClock } from "./harness.ts";

useFakeClock();

it("[H29] the next pause ends its own container although the first one still has no result", async () => {
  const { berth, id, sandbox, container } = await startSandbox();
  const stops = () => container.calls.filter((verb) => verb === "destroy keep");
  container.fault = { verb: "destroy", hold: true };
  const timedOut = sandbox.pause();
  await soon(() => expect(stops()).toHaveLength(1));
  vi.setSystemTime(Date.now() + limits.pauseTimeoutMs);
  await berth.ringAlarm(id);
  expect(await timedOut).toMatchObject({ state: "failed", reason: "pause_timed_out" });

  container.fault = undefined;
  expect(await sandbox.start()).toMatchObject({ state: "running" });
  void sandbox.pause();
  await soon(async () => expect(await sandbox.get()).toMatchObject({ state: "paused" }));
  expect([stops().length, container.agent]).toEqual([2, undefined]);
  container.release();
});
