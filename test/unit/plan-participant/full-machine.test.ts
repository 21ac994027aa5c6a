/** A start on a machine that has no room just then, or with nobody there to ask: that passes by itself. */
import { describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { FakeBerth } from "../../fakes/berth.ts";
import { timersOfOurs } from "../sandbox/timers.ts";

timersOfOurs();

async function refused(fail: "too_many" | "unavailable" | "unsupported", times: number) {
  const berth = new FakeBerth();
  const { id } = await berth.bind({ tenant: "local" }).create({ start: false });
  const machine = berth.machine(id);
  machine.fault = { verb: "start", fail, times };
  return { box: berth.bind({ tenant: "local" }).sandbox(id), machine };
}

describe.each(["too_many", "unavailable"] as const)(
  "a start that is refused for now (%s)",
  (fail) => {
    it("[S28] is tried again, and the call that waits for it is answered", async () => {
      const { box, machine } = await refused(fail, 3);
      expect((await box.exec({ command: "true" })).exitCode).toBe(0);
      const starts = machine.calls.filter((verb) => verb.startsWith("start"));
      expect([starts.length, new Set(starts).size]).toEqual([4, 1]);
    });

    it("[S28] is given up with its time, and the next call starts it", async () => {
      const { box, machine } = await refused(fail, Number.POSITIVE_INFINITY);
      const starting = box.start();
      await vi.advanceTimersByTimeAsync(limits.waitMaxMs);
      expect(await starting).toMatchObject({ state: "starting" });
      await vi.advanceTimersByTimeAsync(limits.startTimeoutMs);
      expect(await box.get()).toMatchObject({
        state: "failed",
        reason: fail === "too_many" ? "start_refused" : "start_timed_out",
        restartable: true,
      });
      machine.fault = undefined;
      expect((await box.exec({ command: "true" })).exitCode).toBe(0);
    });
  },
);

describe("a start that is refused for good", () => {
  it("[S28] is not tried again", async () => {
    const { box, machine } = await refused("unsupported", 1);
    expect(await box.start()).toMatchObject({
      state: "failed",
      reason: "start_refused",
      restartable: false,
    });
    expect(machine.calls.filter((verb) => verb.startsWith("start"))).toHaveLength(1);
  });
});
