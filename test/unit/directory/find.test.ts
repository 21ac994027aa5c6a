import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { staleSandboxes } from "../../../src/objects/directory/list.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { Desk, quiet } from "./harness.ts";

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
    desk.directory.applyReport(late);
    expect(desk.row(box.id)).toMatchObject({ state: "running", revision: box.revision });
    expect(desk.sql("SELECT k, v FROM meta WHERE id = ?", box.id)).toEqual([{ k: "a", v: "1" }]);
  });
});

describe("replace", () => {
  const replace = { scope, onExisting: "replace" } as const;
  const force = { by: "local" };

  it("[D3] one whose lease is held stays its scope's, and nothing is made; its token or force ends it", async () => {
    const claims = [{ token: desk.box(await made()).token }, { force }];
    for (const claim of claims) {
      const old = await made();
      desk.box(old).isHeld = true;
      const rows = () => desk.sql("SELECT * FROM sandbox ORDER BY id");
      const before = rows();
      for (const tokens of [undefined, { token: "another" }]) {
        const refused = desk.find({ ...replace, key: "k", ...(tokens && { claim: tokens }) });
        await expect(refused).rejects.toMatchObject({ code: "lease_held" });
      }
      expect(rows()).toEqual(before);
      expect(desk.current(scope)).toBe(old);
      expect((await desk.find({ scope })).sandbox.id).toBe(old);
      desk.asked.length = 0;
      // The key is as good as new: what it asked for was not done.
      const { sandbox } = await desk.find({ ...replace, key: "k", claim });
      expect(desk.asked).toEqual([`give way ${old}`, `make ${sandbox.id}`]);
      expect(sandbox).toMatchObject({ replaced: old });
      expect(desk.box(old).state).toBe("destroying");
      expect(desk.current(scope)).toBe(sandbox.id);
      expect(await desk.find({ ...replace, key: "k" })).toMatchObject({ made: false });
      desk.sql("DELETE FROM keyed");
    }
  });

  it("[D16] who asked meanwhile for what is there finds it, and who may end it does", async () => {
    const old = await made();
    desk.box(old).isHeld = true;
    const refused = { status: "rejected", reason: { code: "lease_held" } };
    const asked = [replace, replace, { scope }, { scope, onExisting: "error" as const }, { scope }];
    expect(await Promise.allSettled(asked.map((call) => desk.find(call)))).toMatchObject([
      refused,
      refused,
      { value: { sandbox: { id: old } } },
      { reason: { code: "scope_taken" } },
      { value: { sandbox: { id: old } } },
    ]);
    expect(desk.boxes.size).toBe(1);
    const [first, ...others] = await Promise.allSettled([
      desk.find(replace),
      desk.find({ ...replace, claim: { force } }),
      desk.find({ ...replace, claim: { force } }),
    ]);
    expect(first).toMatchObject(refused);
    const current = { value: { sandbox: { id: desk.current(scope) } } };
    expect(others).toMatchObject([current, current]);
    expect(desk.current(scope)).not.toBe(old);
    expect(desk.boxes.size).toBe(2);
  });

  it("[D16] one that cannot be asked is unavailable, and is not ended when nobody waits any more", async () => {
    const old = await made();
    for (const mode of ["away", "silent"] as const) {
      desk.box(old).mode = mode;
      const asked = desk.find(replace);
      const refused = expect(asked).rejects.toMatchObject({ code: "unavailable" });
      await quiet();
      await desk.pass(limits.directoryAskMs);
      await refused;
      desk.box(old).mode = "answers";
      expect(desk.current(scope)).toBe(old);
    }
    desk.asked.length = 0;
    await desk.pass(limits.tellAgainMaxMs);
    await desk.ring();
    expect(desk.asked).toEqual([]);
    expect(desk.alarmAt).toBeUndefined();
    expect((await desk.find({ scope })).sandbox.id).toBe(old);
  });

  it("[D17] the old one is on its way out before the new one is asked for, also after a stop in between", async () => {
    for (const stopsAfter of ["give way", "make"] as const) {
      desk = new Desk();
      const old = await made();
      if (stopsAfter === "give way") desk.box(old).mode = "silent";
      desk.next = "silent";
      desk.find(replace).catch(() => undefined);
      await quiet();
      expect(desk.asked.at(-1)).toMatch(new RegExp(`^${stopsAfter} `));
      expect(desk.asked.includes(`make ${desk.current(scope)}`)).toBe(stopsAfter === "make");
      desk.box(old).mode = "answers";
      desk.next = "answers";
      desk.restart();
      const id = String(desk.current(scope));
      if (stopsAfter === "make") desk.box(id).mode = "answers";
      await desk.pass(limits.tellAgainMs);
      expect(await desk.ring()).toBe(true);
      expect(desk.box(old).state).toBe("destroying");
      expect(desk.row(id)).toMatchObject({ phase: "known", replaces: null, try_at: null });
      expect(desk.current(scope)).toBe(id);
      expect(await desk.ring()).toBe(false);
    }
  });

  it("[D17] an end that was not heard of leaves one that lives: the next who asks makes it", async () => {
    const old = await made();
    const box = desk.box(old);
    box.loses = true;
    await expect(desk.find(replace)).rejects.toMatchObject({ code: "unavailable" });
    expect(box.state).toBe("destroying");
    box.loses = false;
    const [{ sandbox }, joined] = await Promise.all([desk.find({ scope }), desk.find(replace)]);
    expect(joined.sandbox.id).toBe(sandbox.id);
    expect(sandbox.id).not.toBe(old);
    expect([...desk.boxes.values()].filter(({ state }) => state === "paused")).toHaveLength(1);
  });

  it("[D16] what cannot be made replaces nothing: the old one lives and is its scope's", async () => {
    const old = await made();
    desk.next = "refuses";
    for (const claim of [{}, { force }]) {
      const refused = desk.find({ ...replace, claim });
      await expect(refused).rejects.toMatchObject({ code: "unsupported" });
    }
    expect(desk.box(old).state).toBe("paused");
    expect(desk.current(scope)).toBe(old);
    expect((await desk.find({ scope })).sandbox.id).toBe(old);
  });

  it("[D17] an old one on its way out is not its scope's again, whatever it still says", async () => {
    const old = await made();
    const late = desk.box(old).report();
    const { sandbox } = await desk.find(replace);
    desk.box(sandbox.id).become("destroyed");
    desk.box(sandbox.id).tell();
    desk.directory.applyReport(late);
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

  it("[O22] each alarm is one line in the log", async () => {
    desk.next = "away";
    await expect(desk.find({ scope })).rejects.toBeDefined();
    let rung = 0;
    for (; rung < 3; rung++) {
      await desk.pass(Math.max(0, (desk.alarmAt ?? desk.now) - desk.now));
      expect(await desk.ring()).toBe(true);
    }
    const alarms = desk.logged.filter(({ why }) => why === "alarm");
    expect(alarms).toEqual(Array(rung).fill({ object: "directory", why: "alarm" }));
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
      desk.directory.probeStale();
      await quiet();
    }
    expect(new Set(desk.asked)).toEqual(new Set(ids.map((id) => `report ${id}`)));
    // Who has answered is not asked again for a while, though nothing has changed.
    const left = staleSandboxes(desk, desk.now, "", 1_000);
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
    for (let n = 0; n < 20; n++) desk.directory.probeStale();
    expect(desk.asked).toHaveLength(limits.healAtOnceMax);
  });
});
