import { afterEach, describe, expect, it } from "vitest";
import { limits } from "../../src/protocol/limits.ts";
import { Desk, refusal } from "./desk.ts";

let desk: Desk;

afterEach(async () => {
  desk.boxes.fault = () => undefined;
  await desk.rest();
  const { run, joining, leaving } = desk.plan.record ?? {};
  expect([run ?? null, joining ?? [], leaving ?? []]).toEqual([null, [], []]);
});

describe("a full plan", () => {
  it("[PL130] takes another sandbox in the place of a member, and no more than that", async () => {
    desk = await Desk.of(limits.planMembersMax);
    desk.boxes.make("other");
    const member = await desk.drive(desk.put("m7", "other", false));
    expect(member).toMatchObject({ sandbox: "other", replaced: "box7" });
    expect(desk.plan.record?.members).toHaveLength(limits.planMembersMax);
    await desk.rest();
    expect(desk.boxes.of("box7").plan).toBeNull();
    expect(await refusal(desk.put("more", "new"))).toMatchObject({ code: "too_many" });
    expect(desk.boxes.all.has("new")).toBe(false);
  });
});

describe("a commit in best effort", () => {
  it.each(["disk_full", "lease_held"] as const)(
    "[PL131] says why a member could not (%s) where the others have not changed, and not that none has",
    async (code) => {
      desk = await Desk.of(2);
      await desk.drive(desk.run());
      desk.boxes.of("box1").files = 2;
      const step = code === "disk_full" ? "prepare" : "hold";
      desk.boxes.fault = (at, id) => (at === step && id === "box1" ? { refuse: code } : undefined);
      const run = desk.drive(desk.run({ mode: "best_effort" }));
      if (code === "lease_held") {
        expect(await refusal(run)).toMatchObject({ code, key: "m1" });
      } else {
        expect(await run).toMatchObject({ outcome: "aborted", error: { code } });
      }
      expect([...desk.boxes.all.values()].map(({ committed }) => committed)).toEqual([1, 1]);
    },
  );
});
