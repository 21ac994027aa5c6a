import { afterEach, describe, expect, it } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { Desk, quiet, refusal } from "./harness.ts";

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

describe("a run that is decided", () => {
  it.each(["commit", "rollback"] as const)(
    "[PL132] is not joined: a %s asked for then has what was done since in the members that it had let go",
    async (kind) => {
      desk = await Desk.of(2);
      await desk.drive(desk.run());
      for (const box of desk.boxes.all.values()) box.files = 2;
      let open = () => {};
      const closed = new Promise<void>((resolve) => {
        open = resolve;
      });
      desk.boxes.fault = (at, id) =>
        at === "finish" && id === "box1" ? { gate: closed } : undefined;
      const first = desk.run({ kind });
      first.catch(() => undefined);
      await quiet();
      const [free, held] = [...desk.boxes.all.values()];
      expect([free?.heldBy, held?.heldBy]).toEqual([null, 2]);
      desk.boxes.of("box0").files = 3;
      const now = desk.drive(refusal(desk.run({ kind, waitMs: 0 })));
      expect(await now).toMatchObject({ code: "plan_busy", commit: 2 });
      const later = desk.run({ kind, waitMs: 25_000 });
      later.catch(() => undefined);
      await quiet();
      open();
      expect(await desk.drive(first)).toMatchObject({ commit: 2 });
      expect(await desk.drive(later)).toMatchObject({ commit: 3 });
      expect(
        [...desk.boxes.all.values()].map(({ files, committed }) => [files, committed]),
      ).toEqual(
        kind === "commit"
          ? [
              [3, 3],
              [2, 2],
            ]
          : [
              [1, 1],
              [1, 1],
            ],
      );
    },
  );
});

describe("a destroyed member", () => {
  it("[PL133] is replaced by the call that makes one for its key, whoever asks at once; a living one is found", async () => {
    desk = await Desk.of(2);
    await desk.drive(desk.run());
    expect(await desk.drive(desk.put("m0", "new0"))).toMatchObject({ sandbox: "box0" });
    desk.boxes.of("box0").ended = true;
    const all = [desk.put("m0", "new1"), desk.put("m0", "new2"), desk.put("m0", "new3")];
    const put = await desk.drive(Promise.all(all));
    expect(new Set(put.map(({ sandbox }) => sandbox))).toEqual(new Set(["new1"]));
    expect(put[0]?.replaced).toBe("box0");
    expect(desk.boxes.count("make")).toBe(1);
    await desk.rest();
    expect(desk.plan.record?.members.map(({ sandbox }) => sandbox).sort()).toEqual([
      "box1",
      "new1",
    ]);
    expect(await desk.drive(desk.run({ allowEmpty: true }))).toMatchObject({
      outcome: "committed",
      members: [{ sandbox: "new1" }, { sandbox: "box1" }],
    });
  });

  it("[PL133] stays while a run is open, and where nobody can say whether it was destroyed", async () => {
    desk = await Desk.of(1);
    desk.boxes.of("box0").ended = true;
    let open = () => {};
    const closed = new Promise<void>((resolve) => {
      open = resolve;
    });
    desk.boxes.fault = (at) => (at === "prepare" ? { gate: closed } : undefined);
    const run = desk.run();
    await quiet();
    expect((await desk.put("m0", "new")).sandbox).toBe("box0");
    open();
    await desk.drive(run);
    desk.boxes.all.delete("new");
    desk.boxes.isAway = true;
    expect((await desk.drive(desk.put("m0", "new"))).sandbox).toBe("box0");
    expect(desk.boxes.count("make")).toBe(0);
  });
});
