/** A pause whose container does not end in its time is given up; what becomes of that later is no word on the next. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { FakeBerth } from "../../fakes/berth.ts";
import { soon } from "../plan-participant/fake-sandbox.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: Date.now() }));
afterEach(() => vi.useRealTimers());

it("[H29] the next pause ends its own container, though the answer about the first is still awaited", async () => {
  const berth = new FakeBerth();
  const local = berth.bind({ tenant: "local" });
  const { id } = await local.create({ waitMs: 10_000 });
  const [box, machine] = [local.sandbox(id), berth.machine(id)];
  const stops = () => machine.calls.filter((verb) => verb === "destroy keep");
  machine.fault = { verb: "destroy", hold: true };
  const given = box.pause();
  await soon(() => expect(stops()).toHaveLength(1));
  vi.setSystemTime(Date.now() + limits.pauseTimeoutMs);
  await berth.ring(id);
  expect(await given).toMatchObject({ state: "failed", reason: "pause_timed_out" });

  machine.fault = undefined;
  expect(await box.start()).toMatchObject({ state: "running" });
  void box.pause();
  await soon(async () => expect(await box.get()).toMatchObject({ state: "paused" }));
  expect([stops().length, machine.agent]).toEqual([2, undefined]);
  machine.release();
});
