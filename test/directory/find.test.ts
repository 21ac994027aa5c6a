import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { stale } from "../../src/objects/directory/list.ts";
import { limits } from "../../src/protocol/limits.ts";
import { Desk, quiet } from "./desk.ts";

const scope = "github.com/a/b";
let desk: Desk;

beforeEach(() => {
  desk = new Desk();
});

afterEach(async () => {
  // Whatever was asked for is answered or given up: no timer is left.
  await desk.pass(60_000);
  expect(desk.timers).toBe(0);
});

async function made(): Promise<string> {
  const { sandbox } = await desk.find({ scope });
  expect(desk.current(scope)).toBe(sandbox.id);
  return sandbox.id;
}

describe("find or create", () => {
  it("[D1] fifty at once get one sandbox, which one of them makes", async () => {
    const found = await Promise.all(Array.from({ length: 50 }, () => desk.find({ scope })));
    expect(new Set(found.map(({ sandbox }) => sandbox.id)).size).toBe(1);
    expect(found.filter((one) => one.made)).toHaveLength(1);
    expect(desk.asked.filter((call) => call.startsWith("make"))).toHaveLength(1);
  });

  it("[D4] a key gives the same sandbox again, also after a stop, and is no good for another call", async () => {
    const { sandbox } = await desk.find({ key: "once" });
    desk.restart();
    expect(await desk.find({ key: "once" })).toMatchObject({ made: false, sandbox });
    await expect(desk.find({ key: "once", scope })).rejects.toMatchObject({
      code: "idempotency_mismatch",
    });
    expect(desk.asked.filter((call) => call.startsWith("make"))).toHaveLength(1);
    expect((await desk.find({ key: "another" })).sandbox.id).not.toBe(sandbox.id);
  });

  it("[D10] a report that comes late changes nothing that a later one told", async () => {
    const box = desk.box(await made());
    const late = box.report();
    box.metadata = { a: "1" };
    box.become("running");
    box.tell();
    desk.directory.told(late);
    expect(desk.row(box.id)).toMatchObject({ state: "running", revision: box.revision });
    expect(desk.sql("SELECT k, v FROM meta WHERE id = ?", box.id)).toEqual([{ k: "a", v: "1" }]);
  });
});

describe("replace", () => {
  it("[D16] what cannot be made replaces nothing: the old one lives and is its scope's", async () => {
    const old = await made();
    desk.next = "refuses";
    await expect(desk.find({ scope, onExisting: "replace" })).rejects.toMatchObject({
      code: "unsupported",
    });
    await quiet();
    expect(desk.asked.filter((call) => call.startsWith("make"))).toHaveLength(2);
    expect(desk.asked.filter((call) => call.startsWith("end"))).toEqual([]);
    expect(desk.current(scope)).toBe(old);
    expect((await desk.find({ scope })).sandbox.id).toBe(old);
  });

  it("[D17] the old one is ended once the new one is made, whoever says so first, also after a stop in between", async () => {
    const old = await made();
    desk.next = "silent";
    const asked = desk.find({ scope, onExisting: "replace" });
    asked.catch(() => undefined);
    await quiet();
    const id = String(desk.current(scope));
    expect(id).not.toBe(old);
    expect(desk.asked).not.toContain(`end ${old}`);
    // It says itself that it is there; the answer to `make` is never heard, and the Directory stops.
    desk.box(id).tell();
    desk.restart();
    expect(await desk.ring()).toBe(true);
    expect(desk.box(old).state).toBe("destroyed");
    expect(desk.row(old)).toMatchObject({ state: "destroyed", ending: 0, try_at: null });
    expect(desk.current(scope)).toBe(id);
    expect(await desk.ring()).toBe(false);
  });

  it("[D17] an old one that has ended by itself meanwhile is not asked for ever", async () => {
    const old = await made();
    desk.next = "silent";
    desk.find({ scope, onExisting: "replace" }).catch(() => undefined);
    await quiet();
    desk.box(old).become("destroyed");
    desk.box(old).tell();
    desk.box(String(desk.current(scope))).tell();
    for (let n = 0; n < 5 && desk.alarmAt !== undefined; n++) {
      await desk.pass(Math.max(0, desk.alarmAt - desk.now));
      await desk.ring();
    }
    expect(desk.alarmAt).toBeUndefined();
    expect(desk.row(old)).toMatchObject({ ending: 0, try_at: null });
  });

  it("[D17] an old one on its way out is not its scope's again, whatever it still says", async () => {
    const old = await made();
    desk.box(old).mode = "away";
    const { sandbox } = await desk.find({ scope, onExisting: "replace" });
    await quiet();
    expect(desk.row(old)).toMatchObject({ ending: 1 });
    desk.box(sandbox.id).become("destroyed");
    desk.box(sandbox.id).tell();
    desk.box(old).become("running");
    desk.box(old).tell();
    expect(desk.current(scope)).toBeUndefined();
    const { sandbox: third } = await desk.find({ scope });
    expect([old, sandbox.id]).not.toContain(third.id);
  });
});

describe("find", () => {
  it("[D26] of what has not changed writes nothing", async () => {
    const id = await made();
    const writes: string[] = [];
    const sql = desk.sql.bind(desk);
    desk.sql = (query, ...bindings) => {
      if (!/^\s*SELECT/.test(query)) writes.push(query);
      return sql(query, ...bindings);
    };
    await desk.pass(1_000);
    expect((await desk.find({ scope })).sandbox.id).toBe(id);
    expect(desk.asked.at(-1)).toBe(`report ${id}`);
    expect(writes).toEqual([]);
  });
});

describe("sandboxes that do not answer", () => {
  it("[D18] a create whose object is silent is answered in time, and is the same one afterwards", async () => {
    desk.next = "silent";
    const first = desk.find({ scope, key: "k" });
    const refused = expect(first).rejects.toMatchObject({ code: "unavailable" });
    await quiet();
    await desk.pass(limits.directoryAskMs);
    await refused;
    const id = String(desk.current(scope));
    desk.box(id).mode = "answers";
    expect((await desk.find({ scope, key: "k" })).sandbox.id).toBe(id);
    expect(desk.boxes.size).toBe(1);
  });

  it("[D18] a scope whose sandbox cannot be asked is unavailable, and changes nothing", async () => {
    const id = await made();
    for (const mode of ["away", "silent"] as const) {
      desk.box(id).mode = mode;
      const refused = expect(desk.find({ scope })).rejects.toMatchObject({ code: "unavailable" });
      await quiet();
      await desk.pass(limits.directoryAskMs);
      await refused;
    }
    desk.box(id).mode = "answers";
    expect((await desk.find({ scope })).sandbox.id).toBe(id);
  });

  it("[D19] more that hang than are tried at once keep none of the others from its turn", async () => {
    desk.next = "silent";
    const many = limits.healAtOnceMax * 2;
    for (let n = 0; n < many; n++) desk.find().catch(() => undefined);
    await quiet();
    await desk.pass(1);
    desk.find({ scope }).catch(() => undefined);
    await quiet();
    // The Directory stopped before any of them had answered; from then on the youngest would.
    desk.restart();
    const last = String(desk.current(scope));
    desk.box(last).mode = "answers";
    expect(desk.row(last)?.phase).toBe("creating");
    let rings = 0;
    while (desk.row(last)?.phase === "creating" && rings < 10) {
      await desk.pass(Math.max(0, (desk.alarmAt ?? desk.now) - desk.now));
      if (await desk.ring()) rings++;
    }
    expect(desk.row(last)?.phase).toBe("known");
  });

  it("[D19] an alarm rings ever more seldom for what cannot be reached", async () => {
    desk.next = "away";
    await expect(desk.find({ scope })).rejects.toMatchObject({ code: "unavailable" });
    let rings = 0;
    const end = desk.now + 60 * 60_000;
    while (desk.now < end) {
      await desk.pass(Math.max(1, (desk.alarmAt ?? end) - desk.now));
      if (await desk.ring()) rings++;
    }
    expect(rings).toBeGreaterThan(5);
    expect(rings).toBeLessThan(30);
    desk.box(String(desk.current(scope))).mode = "answers";
    await desk.pass(limits.tellAgainMaxMs);
    expect(await desk.ring()).toBe(true);
    expect(desk.row(String(desk.current(scope)))?.phase).toBe("known");
  });

  it("[D20] of all that look old each is asked in turn, also where the first ones never answer", async () => {
    const ids: string[] = [];
    for (let n = 0; n < limits.healAtOnceMax * 3; n++) {
      const { sandbox } = await desk.find();
      desk.box(sandbox.id).become("starting");
      desk.box(sandbox.id).tell();
      ids.push(sandbox.id);
    }
    for (const id of ids.slice(0, limits.healAtOnceMax)) desk.box(id).mode = "away";
    await desk.pass(limits.staleAfterMs + 1);
    desk.asked.length = 0;
    for (let n = 0; n < 3; n++) {
      desk.directory.heal();
      await quiet();
    }
    expect(new Set(desk.asked)).toEqual(new Set(ids.map((id) => `report ${id}`)));
    // Who has answered is not asked again for a while, though nothing has changed.
    const left = stale(desk, desk.now, "", 1_000);
    expect(left).toEqual(ids.slice(0, limits.healAtOnceMax));
  });

  it("[D20] lists that are asked for all the time ask no more at once than that", async () => {
    for (let n = 0; n < limits.healAtOnceMax * 3; n++) {
      const { sandbox } = await desk.find();
      desk.box(sandbox.id).become("starting");
      desk.box(sandbox.id).tell();
      desk.box(sandbox.id).mode = "silent";
    }
    await desk.pass(limits.staleAfterMs + 1);
    desk.asked.length = 0;
    for (let n = 0; n < 20; n++) desk.directory.heal();
    expect(desk.asked).toHaveLength(limits.healAtOnceMax);
  });
});
