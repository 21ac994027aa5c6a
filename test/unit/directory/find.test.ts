import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { staleSandboxes } from "../../../src/objects/directory/list.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { DirectoryHarness, settle } from "./harness.ts";

const scope = "github.com/a/b";
let harness: DirectoryHarness;

beforeEach(() => {
  harness = new DirectoryHarness();
});

afterEach(async () => {
  // Every call has ended: no timer is left.
  await harness.pass(60_000);
  expect(harness.timers).toBe(0);
});

async function made(): Promise<string> {
  const { sandbox } = await harness.findOrCreate({ scope });
  expect(harness.current(scope)).toBe(sandbox.id);
  return sandbox.id;
}

describe("find or create", () => {
  it("[D1] fifty concurrent calls get one sandbox, which one of them creates", async () => {
    const found = await Promise.all(
      Array.from({ length: 50 }, () => harness.findOrCreate({ scope })),
    );
    expect(new Set(found.map(({ sandbox }) => sandbox.id)).size).toBe(1);
    expect(found.filter((result) => result.made)).toHaveLength(1);
    expect(harness.calls.filter((call) => call.startsWith("make"))).toHaveLength(1);
  });

  it("[D4] a key gives the same sandbox again, also after a restart, and is refused for a different call", async () => {
    const { sandbox } = await harness.findOrCreate({ key: "once" });
    harness.restart();
    expect(await harness.findOrCreate({ key: "once" })).toMatchObject({ made: false, sandbox });
    await expect(harness.findOrCreate({ key: "once", scope })).rejects.toMatchObject({
      code: "idempotency_mismatch",
    });
    expect(harness.calls.filter((call) => call.startsWith("make"))).toHaveLength(1);
    expect((await harness.findOrCreate({ key: "another" })).sandbox.id).not.toBe(sandbox.id);
  });

  it("[D10] a late report does not override a newer one", async () => {
    const box = harness.box(await made());
    const late = box.report();
    box.metadata = { a: "1" };
    box.reportAs("running");
    harness.directory.applyReport(late);
    expect(harness.row(box.id)).toMatchObject({ state: "running", revision: box.revision });
    expect(harness.sql("SELECT k, v FROM meta WHERE id = ?", box.id)).toEqual([{ k: "a", v: "1" }]);
  });
});

describe("replace", () => {
  const replace = { scope, onExisting: "replace" } as const;
  const force = { by: "local" };

  it("[D3] a sandbox whose lease is held stays current and nothing is created; its token or force ends it", async () => {
    const claims = [{ token: harness.box(await made()).token }, { force }];
    for (const claim of claims) {
      const old = await made();
      harness.box(old).isHeld = true;
      const rows = () => harness.sql("SELECT * FROM sandbox ORDER BY id");
      const before = rows();
      for (const tokens of [undefined, { token: "another" }]) {
        const refused = harness.findOrCreate({
          ...replace,
          key: "k",
          ...(tokens && { claim: tokens }),
        });
        await expect(refused).rejects.toMatchObject({ code: "lease_held" });
      }
      expect(rows()).toEqual(before);
      expect(harness.current(scope)).toBe(old);
      expect((await harness.findOrCreate({ scope })).sandbox.id).toBe(old);
      harness.calls.length = 0;
      // The key can be used again, because its call had no effect.
      const { sandbox } = await harness.findOrCreate({ ...replace, key: "k", claim });
      expect(harness.calls).toEqual([`give way ${old}`, `make ${sandbox.id}`]);
      expect(sandbox).toMatchObject({ replaced: old });
      expect(harness.box(old).state).toBe("destroying");
      expect(harness.current(scope)).toBe(sandbox.id);
      expect(await harness.findOrCreate({ ...replace, key: "k" })).toMatchObject({ made: false });
      harness.sql("DELETE FROM keyed");
    }
  });

  it("[D16] concurrent calls that accept the present sandbox find it, and those with the right to end it do", async () => {
    const old = await made();
    harness.box(old).isHeld = true;
    const refused = { status: "rejected", reason: { code: "lease_held" } };
    const calls = [replace, replace, { scope }, { scope, onExisting: "error" as const }, { scope }];
    expect(await Promise.allSettled(calls.map((call) => harness.findOrCreate(call)))).toMatchObject(
      [
        refused,
        refused,
        { value: { sandbox: { id: old } } },
        { reason: { code: "scope_taken" } },
        { value: { sandbox: { id: old } } },
      ],
    );
    expect(harness.sandboxes.size).toBe(1);
    const [first, ...others] = await Promise.allSettled([
      harness.findOrCreate(replace),
      harness.findOrCreate({ ...replace, claim: { force } }),
      harness.findOrCreate({ ...replace, claim: { force } }),
    ]);
    expect(first).toMatchObject(refused);
    const current = { value: { sandbox: { id: harness.current(scope) } } };
    expect(others).toMatchObject([current, current]);
    expect(harness.current(scope)).not.toBe(old);
    expect(harness.sandboxes.size).toBe(2);
  });

  it("[D16] a sandbox that does not respond is unavailable, and is not ended later when nobody waits any more", async () => {
    const old = await made();
    for (const mode of ["away", "silent"] as const) {
      harness.box(old).mode = mode;
      await harness.expectUnavailable(harness.findOrCreate(replace));
      harness.box(old).mode = "answers";
      expect(harness.current(scope)).toBe(old);
    }
    harness.calls.length = 0;
    await harness.pass(limits.reportRetryMaxMs);
    await harness.ring();
    expect(harness.calls).toEqual([]);
    expect(harness.alarmAt).toBeUndefined();
    expect((await harness.findOrCreate({ scope })).sandbox.id).toBe(old);
  });

  it("[D17] the old sandbox is ending before the new one is created, also after a restart in between", async () => {
    for (const stopsAfter of ["give way", "make"] as const) {
      harness = new DirectoryHarness();
      const old = await made();
      if (stopsAfter === "give way") harness.box(old).mode = "silent";
      harness.next = "silent";
      harness.findOrCreate(replace).catch(() => undefined);
      await settle();
      expect(harness.calls.at(-1)).toMatch(new RegExp(`^${stopsAfter} `));
      expect(harness.calls.includes(`make ${harness.current(scope)}`)).toBe(stopsAfter === "make");
      harness.box(old).mode = "answers";
      harness.next = "answers";
      harness.restart();
      const id = String(harness.current(scope));
      if (stopsAfter === "make") harness.box(id).mode = "answers";
      await harness.pass(limits.reportRetryMs);
      expect(await harness.ring()).toBe(true);
      expect(harness.box(old).state).toBe("destroying");
      expect(harness.row(id)).toMatchObject({ phase: "known", replaces: null, try_at: null });
      expect(harness.current(scope)).toBe(id);
      expect(await harness.ring()).toBe(false);
    }
  });

  it("[D17] an end whose response was lost leaves no living sandbox: the next call creates one", async () => {
    const old = await made();
    const box = harness.box(old);
    box.losesResponse = true;
    await expect(harness.findOrCreate(replace)).rejects.toMatchObject({ code: "unavailable" });
    expect(box.state).toBe("destroying");
    box.losesResponse = false;
    const [{ sandbox }, joined] = await Promise.all([
      harness.findOrCreate({ scope }),
      harness.findOrCreate(replace),
    ]);
    expect(joined.sandbox.id).toBe(sandbox.id);
    expect(sandbox.id).not.toBe(old);
    expect([...harness.sandboxes.values()].filter(({ state }) => state === "paused")).toHaveLength(
      1,
    );
  });

  it("[D16] a sandbox that cannot be created replaces nothing: the old one stays current", async () => {
    const old = await made();
    harness.next = "refuses";
    for (const claim of [{}, { force }]) {
      const refused = harness.findOrCreate({ ...replace, claim });
      await expect(refused).rejects.toMatchObject({ code: "unsupported" });
    }
    expect(harness.box(old).state).toBe("paused");
    expect(harness.current(scope)).toBe(old);
    expect((await harness.findOrCreate({ scope })).sandbox.id).toBe(old);
  });

  it("[D17] an ending sandbox does not become current again, whatever it still reports", async () => {
    const old = await made();
    const late = harness.box(old).report();
    const { sandbox } = await harness.findOrCreate(replace);
    harness.box(sandbox.id).reportAs("destroyed");
    harness.directory.applyReport(late);
    expect(harness.current(scope)).toBeUndefined();
    const { sandbox: third } = await harness.findOrCreate({ scope });
    expect([old, sandbox.id]).not.toContain(third.id);
  });
});

describe("find", () => {
  it("[D26] without a change writes nothing", async () => {
    const id = await made();
    const writes: string[] = [];
    const sql = harness.sql.bind(harness);
    harness.sql = (query, ...bindings) => {
      if (!/^\s*SELECT/.test(query)) writes.push(query);
      return sql(query, ...bindings);
    };
    await harness.pass(1_000);
    expect((await harness.findOrCreate({ scope })).sandbox.id).toBe(id);
    expect(harness.calls.at(-1)).toBe(`report ${id}`);
    expect(writes).toEqual([]);
  });
});

describe("sandboxes that do not respond", () => {
  it("[D18] a create whose object does not respond fails in time, and a repeated call gets the same sandbox", async () => {
    harness.next = "silent";
    await harness.expectUnavailable(harness.findOrCreate({ scope, key: "k" }));
    const id = String(harness.current(scope));
    harness.box(id).mode = "answers";
    expect((await harness.findOrCreate({ scope, key: "k" })).sandbox.id).toBe(id);
    expect(harness.sandboxes.size).toBe(1);
  });

  it("[D18] a scope whose sandbox does not respond is unavailable, and nothing changes", async () => {
    const id = await made();
    for (const mode of ["away", "silent"] as const) {
      harness.box(id).mode = mode;
      await harness.expectUnavailable(harness.findOrCreate({ scope }));
    }
    harness.box(id).mode = "answers";
    expect((await harness.findOrCreate({ scope })).sandbox.id).toBe(id);
  });

  it("[D19] tasks that hang do not block the others, even if there are more than may run at once", async () => {
    harness.next = "silent";
    const many = limits.staleProbesMax * 2;
    for (let n = 0; n < many; n++) harness.findOrCreate().catch(() => undefined);
    await settle();
    await harness.pass(1);
    harness.findOrCreate({ scope }).catch(() => undefined);
    await settle();
    // The Directory restarts before any of them has responded; from then on the newest would.
    harness.restart();
    const last = String(harness.current(scope));
    harness.box(last).mode = "answers";
    expect(harness.row(last)?.phase).toBe("creating");
    let rings = 0;
    while (harness.row(last)?.phase === "creating" && rings < 10) {
      if (await harness.passToAlarm()) rings++;
    }
    expect(harness.row(last)?.phase).toBe("known");
  });

  it("[O22] each alarm writes one line to the log", async () => {
    harness.next = "away";
    await expect(harness.findOrCreate({ scope })).rejects.toBeDefined();
    let rung = 0;
    for (; rung < 3; rung++) {
      expect(await harness.passToAlarm()).toBe(true);
    }
    const alarms = harness.logged.filter(({ why }) => why === "alarm");
    expect(alarms).toEqual(Array(rung).fill({ object: "directory", why: "alarm" }));
  });

  it("[D19] the alarm for an unreachable sandbox rings at growing intervals", async () => {
    harness.next = "away";
    await expect(harness.findOrCreate({ scope })).rejects.toMatchObject({ code: "unavailable" });
    let rings = 0;
    const end = harness.now + 60 * 60_000;
    while (harness.now < end) {
      await harness.pass(Math.max(1, (harness.alarmAt ?? end) - harness.now));
      if (await harness.ring()) rings++;
    }
    expect(rings).toBeGreaterThan(5);
    expect(rings).toBeLessThan(30);
    harness.box(String(harness.current(scope))).mode = "answers";
    await harness.pass(limits.reportRetryMaxMs);
    expect(await harness.ring()).toBe(true);
    expect(harness.row(String(harness.current(scope)))?.phase).toBe("known");
  });

  it("[D20] each outdated sandbox is probed in turn, even if the first ones never respond", async () => {
    const ids: string[] = [];
    for (let n = 0; n < limits.staleProbesMax * 3; n++) {
      const { sandbox } = await harness.findOrCreate();
      harness.box(sandbox.id).reportAs("starting");
      ids.push(sandbox.id);
    }
    for (const id of ids.slice(0, limits.staleProbesMax)) harness.box(id).mode = "away";
    await harness.pass(limits.staleAfterMs + 1);
    harness.calls.length = 0;
    for (let n = 0; n < 3; n++) {
      harness.directory.probeStale();
      await settle();
    }
    expect(new Set(harness.calls)).toEqual(new Set(ids.map((id) => `report ${id}`)));
    // A sandbox that has responded is not probed again for a while, even if nothing has changed.
    const left = staleSandboxes(harness, harness.now, "", 1_000);
    expect(left).toEqual(ids.slice(0, limits.staleProbesMax));
  });

  it("[D20] frequent lists start no more probes than the limit", async () => {
    for (let n = 0; n < limits.staleProbesMax * 3; n++) {
      const { sandbox } = await harness.findOrCreate();
      harness.box(sandbox.id).reportAs("starting");
      harness.box(sandbox.id).mode = "silent";
    }
    await harness.pass(limits.staleAfterMs + 1);
    harness.calls.length = 0;
    for (let n = 0; n < 20; n++) harness.directory.probeStale();
    expect(harness.calls).toHaveLength(limits.staleProbesMax);
  });
});
