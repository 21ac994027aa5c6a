/** A plan's memory always equals its rows, and a request without effect is not repeated at once. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { putMember } from "../../../src/objects/plan/members.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { PlanHarness, refusal, settle } from "./harness.ts";

let harness: PlanHarness;

beforeEach(() => {
  harness = new PlanHarness();
});

afterEach(() => harness.expectNothingLeft());

/** As if a row were too large or the disk full: the write throws, and the instance continues. */
function cannotWrite(table: string): void {
  harness.stopsAt = (query) => {
    if (query.includes(`INTO ${table} `)) throw new Error(`${table} cannot be written`);
    return false;
  };
}

describe("a change that cannot be written", () => {
  it.each(["joining", "plan"])("[PL137] has no effect: a join (%s)", async (table) => {
    if (table !== "plan") harness.open();
    cannotWrite(table);
    const put = (async () => harness.put("a", "new0"))();
    await expect(put).rejects.toThrow(`${table} cannot be written`);
    await settle();
    expect(harness.sandboxes.calls).toEqual([]);
    const { record } = harness.plan;
    expect(record?.joining ?? []).toEqual([]);
    harness.stopsAt = () => false;
    expect(harness.restart().record).toEqual(record);
    expect(await harness.drive(harness.put("a", "new1"))).toMatchObject({ sandbox: "new1" });
  });

  it("[PL137] has no effect: a run whose key cannot be stored does not begin", async () => {
    harness = await PlanHarness.withMembers(1);
    const before = harness.plan.record;
    cannotWrite("keyed");
    await expect(harness.run({ key: "k" })).rejects.toThrow("keyed cannot be written");
    await settle();
    expect(harness.plan.record).toEqual(before);
    harness.stopsAt = () => false;
    expect(harness.restart().record).toEqual(before);
    expect(await harness.drive(harness.run({ key: "k" }))).toMatchObject({ commit: 1 });
  });

  it("[PL137] a call that can never succeed is not stored", async () => {
    const metadata = Object.fromEntries(
      Array.from({ length: limits.metadataKeysMax + 1 }, (_, n) => [`k${n}`, "v"]),
    );
    const make = { spec: { id: "new0" }, metadata, start: true } as never;
    const put = putMember(harness.open(), { key: "a", sandbox: "new0", make });
    expect(await refusal(put)).toMatchObject({ code: "bad_request", field: "metadata" });
    expect([harness.sandboxes.calls, harness.plan.record?.joining]).toEqual([[], []]);
  });
});

describe("a request", () => {
  it("[PL138] that changed nothing is not repeated before the next retry", async () => {
    harness.open();
    const { step } = harness.plan;
    harness.plan.step = () => {};
    const put = harness.put("a", "new0");
    put.catch(() => undefined);
    await settle();
    expect(harness.sandboxes.count("join")).toBe(1);
    expect(await harness.next()).toBe(true);
    await settle();
    expect(harness.sandboxes.count("join")).toBe(2);
    harness.plan.step = step;
    expect(await harness.drive(put)).toMatchObject({ sandbox: "new0" });
  });

  it.each([false, true])(
    "[PL138] whose stored call is missing is refused, and its key is free (after a restart: %s)",
    async (isFresh) => {
      harness.sandboxes.failAt("make", "silent");
      const first = harness.put("a", "new0");
      first.catch(() => undefined);
      await settle();
      harness.rows.exec("UPDATE joining SET call = NULL");
      harness.sandboxes.fault = () => undefined;
      let looks = 0;
      harness.stopsAt = (query) => {
        if (query.startsWith("SELECT call") && ++looks > 10) throw new Error("it goes in circles");
        return false;
      };
      if (isFresh) harness.restart().resume();
      else expect(await harness.refusal(first)).toMatchObject({ code: "internal" });
      await settle();
      expect([looks, harness.plan.record?.joining]).toEqual([1, []]);
      expect(harness.sandboxes.all.size).toBe(0);
      expect(await harness.drive(harness.put("a", "new1"))).toMatchObject({ sandbox: "new1" });
    },
  );
});
