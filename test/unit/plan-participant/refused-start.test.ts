/** A start that the engine refuses for now, because it has no room or is unreachable, is retried. */
import { describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { startSandbox, useFakeTimers } from "../sandbox/harness.ts";

useFakeTimers();

async function refused(fail: "too_many" | "unavailable" | "unsupported", times: number) {
  const { sandbox, container } = await startSandbox({ start: false });
  container.fault = { verb: "start", fail, times };
  return { sandbox, container };
}

describe.each(["too_many", "unavailable"] as const)(
  "a start that is refused for now (%s)",
  (fail) => {
    it("[S28] is retried, and the call that waits for it succeeds", async () => {
      const { sandbox, container } = await refused(fail, 3);
      expect((await sandbox.exec({ command: "true" })).exitCode).toBe(0);
      const starts = container.calls.filter((verb) => verb.startsWith("start"));
      expect([starts.length, new Set(starts).size]).toEqual([4, 1]);
    });

    it("[S28] fails after its time limit, and the next call starts the sandbox", async () => {
      const { sandbox, container } = await refused(fail, Number.POSITIVE_INFINITY);
      const starting = sandbox.start();
      await vi.advanceTimersByTimeAsync(limits.waitMaxMs);
      expect(await starting).toMatchObject({ state: "starting" });
      await vi.advanceTimersByTimeAsync(limits.startTimeoutMs);
      expect(await sandbox.get()).toMatchObject({
        state: "failed",
        reason: fail === "too_many" ? "start_refused" : "start_timed_out",
        restartable: true,
      });
      container.fault = undefined;
      expect((await sandbox.exec({ command: "true" })).exitCode).toBe(0);
    });
  },
);

describe("a start that is refused for good", () => {
  it("[S28] is not retried", async () => {
    const { sandbox, container } = await refused("unsupported", 1);
    expect(await sandbox.start()).toMatchObject({
      state: "failed",
      reason: "start_refused",
      restartable: false,
    });
    expect(container.calls.filter((verb) => verb.startsWith("start"))).toHaveLength(1);
  });
});
