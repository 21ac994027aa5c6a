/** Why an incarnation ended, as its sandbox finds out, and what that means for the next one. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import type { FakeContainer } from "../../fakes/container.ts";
import { interrupted, startSandbox } from "./harness.ts";

afterEach(() => vi.useRealTimers());

const advanceClock = (ms: number) => vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + ms });

function exitContainer(container: FakeContainer, reason: "exited" | "out_of_memory"): void {
  container.exitWith({ exitCode: null, signal: "SIGKILL", reason });
}

describe("a container that is lost", () => {
  it("[S30] for lack of memory says so, and the third such exit in ten minutes is final", async () => {
    const { sandbox, container, id, berth } = await startSandbox();
    for (let n = 1; n <= limits.outOfMemoryMax; n++) {
      expect((await sandbox.exec({ command: "echo on" })).stdout).toBe("on\n");
      exitContainer(container, "out_of_memory");
      await expect(sandbox.exec({ command: "echo lost" })).rejects.toMatchObject(interrupted);
      expect(await sandbox.get()).toMatchObject({
        state: "failed",
        reason: "out_of_memory",
        restartable: n < limits.outOfMemoryMax,
      });
      await berth.evict(id);
    }
    await expect(sandbox.exec({ command: "echo no" })).rejects.toMatchObject({
      code: "start_failed",
      facts: { reason: "out_of_memory" },
    });
    const { events } = await sandbox.events();
    expect(events.map(({ event }) => event)).toContainEqual({
      type: "state",
      state: "failed",
      reason: "out_of_memory",
    });
    // An explicit start runs it once more; that exit is the fourth.
    expect((await sandbox.start()).state).toBe("running");
    exitContainer(container, "out_of_memory");
    await expect(sandbox.exec({ command: "echo lost" })).rejects.toThrow();
    expect(await sandbox.get()).toMatchObject({ state: "failed", restartable: false });
    // Ten minutes later these exits no longer count.
    advanceClock(limits.restartsWindowMs);
    expect((await sandbox.start()).state).toBe("running");
    exitContainer(container, "out_of_memory");
    await expect(sandbox.exec({ command: "echo lost" })).rejects.toThrow();
    expect(await sandbox.get()).toMatchObject({ state: "failed", restartable: true });
  });

  it("[S34] names the source of its files in each start event and in the responses", async () => {
    const { sandbox, container } = await startSandbox();
    const made = await sandbox.makeCheckpoint();
    const sources: (string | undefined)[] = [(await sandbox.get()).files];
    exitContainer(container, "exited");
    await expect(sandbox.exec({ command: "echo lost" })).rejects.toThrow();
    sources.push((await sandbox.start()).files, (await sandbox.restore(made.id)).files);
    expect(sources).toEqual(["new", "kept", "snapshot"]);
    const states = (await sandbox.events()).events.flatMap(({ event }) =>
      event.type === "state" ? [event] : [],
    );
    const up = states.filter(({ state }) => state === "running");
    expect(up.map(({ files }) => files)).toEqual(sources);
    expect(states.filter(({ files }) => files !== undefined)).toEqual(up);
  });

  it("[S30] for another reason, or for none that is known in time, counts as container_lost", async () => {
    const { sandbox, container } = await startSandbox();
    exitContainer(container, "exited");
    await expect(sandbox.exec({ command: "echo lost" })).rejects.toThrow();
    expect(await sandbox.get()).toMatchObject({ reason: "container_lost", restartable: true });
    expect((await sandbox.exec({ command: "echo on" })).stdout).toBe("on\n");
    const began = performance.now();
    container.fault = { verb: "monitor", hold: true };
    exitContainer(container, "out_of_memory");
    await expect(sandbox.exec({ command: "echo lost" })).rejects.toThrow();
    expect(await sandbox.get()).toMatchObject({ reason: "container_lost", restartable: true });
    expect(container.held.size).toBe(1);
    expect(performance.now() - began).toBeLessThan(10 * limits.endReasonWaitMs);
    container.release();
  });
});
