/** Why a life ended, as a sandbox finds it out, and what that means for the next one. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { FakeBerth } from "../../fakes/berth.ts";
import type { FakeMachine } from "../../fakes/container.ts";

afterEach(() => vi.useRealTimers());

const later = (ms: number) => vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + ms });

async function running() {
  const berth = new FakeBerth();
  const local = berth.bind({ tenant: "local" });
  const { id } = await local.create({ waitMs: 10_000 });
  return { berth, id, box: local.sandbox(id), machine: berth.machine(id) };
}

function die(machine: FakeMachine, reason: "exited" | "out_of_memory"): void {
  machine.die({ exitCode: null, signal: "SIGKILL", reason });
}

describe("a container that is lost", () => {
  it("[S30] for want of memory is told as that, and the third such end in ten minutes is the last", async () => {
    const { box, machine, id, berth } = await running();
    for (let n = 1; n <= limits.outOfMemoryMax; n++) {
      expect((await box.exec({ command: "echo on" })).stdout).toBe("on\n");
      die(machine, "out_of_memory");
      await expect(box.exec({ command: "echo lost" })).rejects.toMatchObject({
        code: "operation_interrupted",
      });
      expect(await box.get()).toMatchObject({
        state: "failed",
        reason: "out_of_memory",
        restartable: n < limits.outOfMemoryMax,
      });
      await berth.evict(id);
    }
    await expect(box.exec({ command: "echo no" })).rejects.toMatchObject({
      code: "start_failed",
      facts: { reason: "out_of_memory" },
    });
    const { events } = await box.events();
    expect(events.map(({ event }) => event)).toContainEqual({
      type: "state",
      state: "failed",
      reason: "out_of_memory",
    });
    // Who asks for it in so many words gets one more life, whose end is the fourth.
    expect((await box.start()).state).toBe("running");
    die(machine, "out_of_memory");
    await expect(box.exec({ command: "echo lost" })).rejects.toThrow();
    expect(await box.get()).toMatchObject({ state: "failed", restartable: false });
    // Ten minutes later these ends say nothing any more.
    later(limits.restartsWindowMs);
    expect((await box.start()).state).toBe("running");
    die(machine, "out_of_memory");
    await expect(box.exec({ command: "echo lost" })).rejects.toThrow();
    expect(await box.get()).toMatchObject({ state: "failed", restartable: true });
  });

  it("[S34] names, in the event of each start and in the answer alike, where the files of that life come from", async () => {
    const { box, machine } = await running();
    const made = await box.makeCheckpoint();
    const told: (string | undefined)[] = [(await box.get()).files];
    die(machine, "exited");
    await expect(box.exec({ command: "echo lost" })).rejects.toThrow();
    told.push((await box.start()).files, (await box.restore(made.id)).files);
    expect(told).toEqual(["new", "kept", "snapshot"]);
    const states = (await box.events()).events.flatMap(({ event }) =>
      event.type === "state" ? [event] : [],
    );
    const up = states.filter(({ state }) => state === "running");
    expect(up.map(({ files }) => files)).toEqual(told);
    expect(states.filter(({ files }) => files !== undefined)).toEqual(up);
  });

  it("[S30] otherwise, or of which nobody says why in time, is lost through no fault of its own", async () => {
    const { box, machine } = await running();
    die(machine, "exited");
    await expect(box.exec({ command: "echo lost" })).rejects.toThrow();
    expect(await box.get()).toMatchObject({ reason: "container_lost", restartable: true });
    expect((await box.exec({ command: "echo on" })).stdout).toBe("on\n");
    const began = performance.now();
    machine.fault = { verb: "monitor", hold: true };
    die(machine, "out_of_memory");
    await expect(box.exec({ command: "echo lost" })).rejects.toThrow();
    expect(await box.get()).toMatchObject({ reason: "container_lost", restartable: true });
    expect(machine.held.size).toBe(1);
    expect(performance.now() - began).toBeLessThan(10 * limits.endToldMs);
    machine.release();
  });
});
