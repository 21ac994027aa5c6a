import { describe, expect, it } from "vitest";
import type { CallTime } from "./load.ts";
import { gapsOf, type Slot, slotsOf } from "./slots.ts";
import { judge } from "./verdict.ts";
import type { Measurement } from "./watch.ts";

const count = 30;
const mebibyte = 2 ** 20;

function slots(change: (slot: Slot, index: number) => void = () => {}): Slot[] {
  return Array.from({ length: count }, (_, index) => {
    const slot: Slot = {
      ...{ minute: index, calls: 1000, failed: 0, execP50Ms: 5, execP99Ms: 20, allP99Ms: 80 },
      bytes: { workerd: 200 * mebibyte, engine: 100 * mebibyte, agents: 80 * mebibyte },
      descriptors: { workerd: 200, engine: 60, agents: 50 },
    };
    change(slot, index);
    return slot;
  });
}

const growing = (all: Slot[]) =>
  judge(all)
    .filter(({ flat }) => !flat)
    .map(({ what }) => what);

describe("the verdict of a soak", () => {
  it("[CA14] is flat for a steady run, whatever its first tenth and single slots were like", () => {
    expect(judge(slots()).length).toBe(8);
    expect(growing(slots())).toEqual([]);
    const warmedUp = slots((slot, index) => {
      if (index < count / 10) slot.bytes.workerd /= 2;
      if (index === 20) Object.assign(slot, { execP99Ms: 2_000, allP99Ms: 5_000 });
    });
    expect(growing(warmedUp)).toEqual([]);
  });

  it("[CA14] detects each growth, however slow", () => {
    for (const part of ["workerd", "engine", "agents"] as const) {
      const leak = slots((slot, index) => {
        slot.bytes[part] *= 1 + index * 0.004;
      });
      expect(growing(leak)).toEqual([`memory of ${part}`]);
      const open = slots((slot, index) => {
        slot.descriptors[part] += index;
      });
      expect(growing(open)).toEqual([`descriptors of ${part}`]);
    }
    const slow = slots((slot, index) => {
      slot.execP99Ms *= 1 + index * 0.05;
    });
    expect(growing(slow)).toEqual(["p99 of exec"]);
  });

  it("[CA15] lists calls, failures, latency and memory of each time slot", () => {
    const callTimes: CallTime[] = Array.from({ length: 200 }, (_, n) => ({
      ...{ verb: n % 2 === 0 ? "exec" : "get", atMs: 1_000 + n * 100, ms: n < 100 ? 1 : 9 },
      ...(n === 150 ? { failed: "a fault" } : {}),
    }));
    const measurements: Measurement[] = Array.from({ length: 20 }, (_, n) => ({
      atMs: 1_000 + n * 1_000,
      bytes: { workerd: n < 10 ? 1 : 2, engine: 3, agents: 4 },
      descriptors: { workerd: 5, engine: 6, agents: 7 },
    }));
    const results = { callTimes, measurements, startedMs: 1_000, slotMs: 10_000 };
    const [first, second, ...none] = slotsOf(results);
    expect(none).toEqual([]);
    expect(first).toMatchObject({ minute: 0, calls: 100, failed: 0, execP50Ms: 1, execP99Ms: 1 });
    expect(second).toMatchObject({ calls: 100, failed: 1, execP50Ms: 9, allP99Ms: 9 });
    expect([first?.bytes.workerd, second?.bytes.workerd]).toEqual([1, 2]);
    expect(gapsOf(results)).toEqual([]);
  });

  it("[CA15] lists each slot without a command or a measurement", () => {
    const execAt = (atMs: number): CallTime => ({ verb: "exec", atMs, ms: 1 });
    const measuredAt = (atMs: number): Measurement => ({
      atMs,
      bytes: { workerd: 1, engine: 3, agents: 4 },
      descriptors: { workerd: 5, engine: 6, agents: 7 },
    });
    const callTimes: CallTime[] = [execAt(0), { verb: "get", atMs: 15_000, ms: 1 }, execAt(25_000)];
    const measurements = [measuredAt(0), measuredAt(15_000), measuredAt(39_000)];
    expect(gapsOf({ callTimes, measurements, startedMs: 0, slotMs: 10_000 })).toEqual([
      "minute 0.2: no command in 10 s",
      "minute 0.3: no measurement in 10 s",
      "minute 0.5: no command in 10 s",
    ]);
  });
});
