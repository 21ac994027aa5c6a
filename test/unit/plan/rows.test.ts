/** What a plan keeps in memory is what stands in its rows, and what changed nothing is not done again at once. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { putMember } from "../../../src/objects/plan/members.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { Desk, quiet, refusal } from "./harness.ts";

let desk: Desk;

beforeEach(() => {
  desk = new Desk();
});

afterEach(async () => {
  desk.stopsAt = () => false;
  desk.boxes.fault = () => undefined;
  await desk.rest();
  const { run, joining, leaving } = desk.plan.record ?? {};
  expect([run ?? null, joining ?? [], leaving ?? []]).toEqual([null, [], []]);
});

/** As a row that is too large, or a disk without room: the write throws, and the instance lives on. */
function cannotWrite(table: string): void {
  desk.stopsAt = (query) => {
    if (query.includes(`INTO ${table} `)) throw new Error(`${table} cannot be written`);
    return false;
  };
}

describe("what cannot be written", () => {
  it.each(["joining", "plan"])("[PL137] has not happened: a member (%s)", async (table) => {
    if (table !== "plan") desk.open();
    cannotWrite(table);
    const put = (async () => desk.put("a", "new0"))();
    await expect(put).rejects.toThrow(`${table} cannot be written`);
    await quiet();
    expect(desk.boxes.asked).toEqual([]);
    const { record } = desk.plan;
    expect(record?.joining ?? []).toEqual([]);
    desk.stopsAt = () => false;
    expect(desk.restart().record).toEqual(record);
    expect(await desk.drive(desk.put("a", "new1"))).toMatchObject({ sandbox: "new1" });
  });

  it("[PL137] has not happened: a run whose key cannot be kept is none", async () => {
    desk = await Desk.of(1);
    const before = desk.plan.record;
    cannotWrite("keyed");
    await expect(desk.run({ key: "k" })).rejects.toThrow("keyed cannot be written");
    await quiet();
    expect(desk.plan.record).toEqual(before);
    desk.stopsAt = () => false;
    expect(desk.restart().record).toEqual(before);
    expect(await desk.drive(desk.run({ key: "k" }))).toMatchObject({ commit: 1 });
  });

  it("[PL137] a call that nobody could carry out is not kept", async () => {
    const metadata = Object.fromEntries(
      Array.from({ length: limits.metadataKeysMax + 1 }, (_, n) => [`k${n}`, "v"]),
    );
    const make = { spec: { id: "new0" }, metadata, start: true } as never;
    const put = putMember(desk.open(), { key: "a", sandbox: "new0", make });
    expect(await refusal(put)).toMatchObject({ code: "bad_request", field: "metadata" });
    expect([desk.boxes.asked, desk.plan.record?.joining]).toEqual([[], []]);
  });
});

describe("a question", () => {
  it("[PL138] that changed nothing is not asked again before the next look", async () => {
    desk.open();
    const { step } = desk.plan;
    desk.plan.step = () => {};
    const put = desk.put("a", "new0");
    put.catch(() => undefined);
    await quiet();
    expect(desk.boxes.count("join")).toBe(1);
    expect(await desk.next()).toBe(true);
    await quiet();
    expect(desk.boxes.count("join")).toBe(2);
    desk.plan.step = step;
    expect(await desk.drive(put)).toMatchObject({ sandbox: "new0" });
  });

  it.each([false, true])(
    "[PL138] whose call is not known any more is refused, and its key is free (a fresh instance: %s)",
    async (isFresh) => {
      desk.boxes.fault = (at) => (at === "make" ? "silent" : undefined);
      const first = desk.put("a", "new0");
      first.catch(() => undefined);
      await quiet();
      desk.rows.exec("UPDATE joining SET call = NULL");
      desk.boxes.fault = () => undefined;
      let looks = 0;
      desk.stopsAt = (query) => {
        if (query.startsWith("SELECT call") && ++looks > 10) throw new Error("it goes in circles");
        return false;
      };
      if (isFresh) desk.restart().resume();
      else expect(await desk.drive(refusal(first))).toMatchObject({ code: "internal" });
      await quiet();
      expect([looks, desk.plan.record?.joining]).toEqual([1, []]);
      expect(desk.boxes.all.size).toBe(0);
      expect(await desk.drive(desk.put("a", "new1"))).toMatchObject({ sandbox: "new1" });
    },
  );
});
