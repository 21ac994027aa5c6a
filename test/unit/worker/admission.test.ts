import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { Admission, type Pass } from "../../../src/worker/admission.ts";

const MiB = 1024 * 1024;
const { admittedCallsMax, admittedCallMs, admittedTenantBytesMax, admittedBodyMs, bodyReadMs } =
  limits;
const { admissionTenantWaitersMax, admissionWaitMs } = limits;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Calls that note when they are admitted. */
function calls() {
  const admission = new Admission();
  const admitted: string[] = [];
  const refused: string[] = [];
  const passes = new Map<string, Pass>();
  return {
    admitted,
    refused,
    passes,
    enter(tenant: string, name: string, bytes = 0): void {
      try {
        Promise.resolve(admission.enter(tenant, bytes)).then(
          (pass) => {
            admitted.push(name);
            passes.set(name, pass);
          },
          () => refused.push(name),
        );
      } catch {
        refused.push(name);
      }
    },
    async leave(...names: string[]): Promise<void> {
      await vi.advanceTimersByTimeAsync(0);
      for (const name of names) passes.get(name)?.leave((run) => setTimeout(run, 0));
      await vi.advanceTimersByTimeAsync(0);
    },
  };
}

const fill = (into: ReturnType<typeof calls>, tenant: string, from: string) => {
  const names = Array.from({ length: admittedCallsMax }, (_, n) => `${from}${n}`);
  for (const name of names) into.enter(tenant, name);
  return names;
};

describe("admission of calls", () => {
  it("[OV1] admits at once while there is room, and in the order of arrival afterwards", async () => {
    const seen = calls();
    const first = fill(seen, "a", "first");
    const second = fill(seen, "a", "second");
    await vi.advanceTimersByTimeAsync(0);
    expect(seen.admitted).toEqual(first);
    await seen.leave(...first.slice(0, 3));
    expect(seen.admitted).toEqual([...first, ...second.slice(0, 3)]);
  });

  it("[OV1] counts a call until its response has been written", async () => {
    const seen = calls();
    const first = fill(seen, "a", "first");
    seen.enter("a", "next");
    await vi.advanceTimersByTimeAsync(0);
    const left = seen.leave(...first);
    await Promise.resolve();
    expect(seen.admitted).not.toContain("next");
    await left;
    expect(seen.admitted).toContain("next");
  });

  it("[OV2] gives tenants turns, however many calls one of them has", async () => {
    const seen = calls();
    const busy = fill(seen, "busy", "now");
    for (let n = 0; n < 100; n += 1) seen.enter("busy", `busy${n}`);
    seen.enter("quiet", "quiet0");
    seen.enter("quiet", "quiet1");
    await seen.leave(...busy.slice(0, 4));
    expect(seen.admitted.slice(admittedCallsMax)).toEqual(["busy0", "quiet0", "busy1", "quiet1"]);
  });

  it("[OV2] charges large bodies more turns", async () => {
    const seen = calls();
    const busy = fill(seen, "other", "now");
    for (let n = 0; n < 5; n += 1) seen.enter("large", `large${n}`, MiB);
    for (let n = 0; n < 20; n += 1) seen.enter("small", `small${n}`);
    await seen.leave(...busy.slice(0, 12));
    const after = seen.admitted.slice(admittedCallsMax);
    expect(after.filter((name) => name.startsWith("large"))).toHaveLength(2);
    expect(after.filter((name) => name.startsWith("small"))).toHaveLength(10);
  });

  it("[OV3] holds bodies of one tenant back beyond its share, and those of others not", async () => {
    const seen = calls();
    const count = admittedTenantBytesMax / (4 * MiB);
    for (let n = 0; n <= count; n += 1) seen.enter("a", `a${n}`, 4 * MiB);
    seen.enter("b", "b", 4 * MiB);
    await vi.advanceTimersByTimeAsync(600);
    expect(seen.admitted).not.toContain(`a${count}`);
    expect(seen.admitted).toContain("b");
    await seen.leave("a0");
    expect(seen.admitted).toContain(`a${count}`);
  });

  it("[OV4] frees the room of calls that wait for something else, and of callers that have gone", async () => {
    const seen = calls();
    fill(seen, "a", "long");
    await vi.advanceTimersByTimeAsync(admittedCallMs);
    seen.enter("b", "next");
    await vi.advanceTimersByTimeAsync(0);
    expect(seen.admitted).toContain("next");
  });

  it("[OV4] a waiter looks for room itself when no other call comes or goes", async () => {
    const seen = calls();
    fill(seen, "a", "gone");
    seen.enter("b", "waiter");
    await vi.advanceTimersByTimeAsync(1_000);
    expect(seen.admitted).toContain("waiter");
  });

  it("[OV4] forgets the bytes of a body whose caller has gone", async () => {
    const seen = calls();
    const count = admittedTenantBytesMax / (4 * MiB);
    for (let n = 0; n < count; n += 1) seen.enter("a", `gone${n}`, 4 * MiB);
    await vi.advanceTimersByTimeAsync(bodyReadMs);
    seen.enter("a", "next", 4 * MiB);
    await vi.advanceTimersByTimeAsync(0);
    expect(seen.admitted).toContain("next");
  });

  it("[OV4] forgets the bytes of a body soon after it has arrived, however long the call lasts", async () => {
    const seen = calls();
    const count = admittedTenantBytesMax / (4 * MiB);
    for (let n = 0; n < count; n += 1) seen.enter("a", `long${n}`, 4 * MiB);
    await vi.advanceTimersByTimeAsync(0);
    for (const pass of seen.passes.values()) pass.bodyIsRead();
    await vi.advanceTimersByTimeAsync(admittedBodyMs);
    seen.enter("a", "next", 4 * MiB);
    await vi.advanceTimersByTimeAsync(0);
    expect(seen.admitted).toContain("next");
  });

  it("[OV5] refuses a call beyond the longest queue", () => {
    const seen = calls();
    fill(seen, "a", "first");
    fill(seen, "a", "rest");
    for (let n = admittedCallsMax; n < admissionTenantWaitersMax; n += 1) seen.enter("a", `${n}`);
    expect(seen.refused).toEqual([]);
    seen.enter("a", "beyond");
    expect(seen.refused).toEqual(["beyond"]);
    seen.enter("b", "of another tenant");
    expect(seen.refused).toEqual(["beyond"]);
  });

  it("[OV5] refuses a call that has waited too long", async () => {
    const seen = calls();
    const bodies = admittedTenantBytesMax / (4 * MiB);
    for (let n = 0; n < bodies; n += 1) seen.enter("a", `held${n}`, 4 * MiB);
    seen.enter("a", "late", 4 * MiB);
    await vi.advanceTimersByTimeAsync(admissionWaitMs + 1_000);
    expect(seen.refused).toEqual(["late"]);
  });
});
