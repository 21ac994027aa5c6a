import { afterEach, describe, expect, it, vi } from "vitest";
import type { SandboxApi } from "../../../src/protocol/api.ts";
import { Box, soon } from "./fake-sandbox.ts";

afterEach(() => {
  vi.useRealTimers();
});

const day = 24 * 60 * 60_000;
const holders = async (box: Box) =>
  (await box.events("lease")).flatMap(({ what, holder }) => (what === "granted" ? [holder] : []));
const waiting = (box: Box, count: number) =>
  soon(async () => expect((await box.api.lease()).waiterCount).toBe(count));

async function granted(call: ReturnType<SandboxApi["acquireLease"]>): Promise<string> {
  const lease = await call;
  if (!("token" in lease)) throw new Error("it was not granted");
  return lease.token;
}

describe("the lease of a run", () => {
  it("[PL54] is waited for like every other: in order, and nobody overtakes", async () => {
    const box = await Box.member();
    const first = await granted(box.api.acquireLease({ holder: "first" }));
    const before = box.api.acquireLease({ holder: "before", waitMs: 10_000 });
    await waiting(box, 1);
    const holding = [box.hold(1, 10_000), box.hold(1, 10_000)];
    await waiting(box, 2);
    const after = box.api.acquireLease({ holder: "after", waitMs: 10_000 });
    await waiting(box, 3);
    await box.api.releaseLease(first);
    await box.api.releaseLease(await granted(before));
    expect(await Promise.all(holding)).toEqual([null, null]);
    await box.prepare(1);
    expect(await holders(box)).toEqual(["first", "before", "plan:release"]);
    await box.finish(1, "commit");
    await box.api.releaseLease(await granted(after));
    expect((await holders(box)).at(-1)).toBe("after");
    expect((await box.left()).lease).toBe("free");
  });

  it("[PL54] one that others do not let go of in time is refused with who has it, and nothing waits on", async () => {
    const box = await Box.member();
    await box.api.acquireLease({ holder: "busy" });
    const facts = { holder: "busy" };
    expect(await box.hold(1, 0)).toMatchObject({ code: "lease_held", facts });
    expect(await box.hold(1, 30)).toMatchObject({ code: "lease_wait_timeout", facts });
    expect(await box.finish(1, "abort")).toEqual({ outcome: "aborted" });
    expect(await box.left()).toMatchObject({ lease: "held", waiterCount: 0 });
  });

  it("[PL54] an abort ends the waiting too, at once and for good", async () => {
    const box = await Box.member();
    const busy = await granted(box.api.acquireLease({ holder: "busy" }));
    const holding = box.hold(1, 20_000);
    await waiting(box, 1);
    expect(await box.finish(1, "abort")).toEqual({ outcome: "aborted" });
    expect(await holding).toMatchObject({ code: "stale_run" });
    expect((await box.api.lease()).waiterCount).toBe(0);
    await box.api.releaseLease(busy);
    expect(await holders(box)).toEqual(["busy"]);
  });

  it("[PL54] running commands are let finish first, and later ones are told of the run", async () => {
    const box = await Box.member();
    const running = box.api.exec({ command: "sleep 0.1" });
    await soon(() => expect(box.machine.agent?.running.size).toBe(1));
    const holding = box.hold(1, 10_000);
    await waiting(box, 1);
    await expect(box.api.exec({ command: "true" })).rejects.toMatchObject({
      code: "lease_pending",
    });
    expect((await running).exitCode).toBe(0);
    expect(await holding).toBeNull();
    await expect(box.api.exec({ command: "true" })).rejects.toMatchObject({
      code: "lease_held",
      facts: { holder: "plan:release" },
    });
  });

  it("[PL55] has no end but the run's: not by time, not by idleness, not with its object", async () => {
    const box = await Box.member({ idleTimeoutMs: 60_000 });
    await box.hold(1);
    const vote = await box.prepare(1);
    const before = await box.api.lease();
    const now = Date.now();
    for (let days = 1; days <= 3; days++) {
      await box.evict();
      vi.useFakeTimers({ toFake: ["Date"], now: now + days * day });
      await box.berth.ring(box.id);
      expect(await box.api.lease()).toMatchObject({ state: "held", acquiredAt: before.acquiredAt });
      expect((await box.api.get()).state).toBe("running");
    }
    expect(await box.prepare(1)).toEqual(vote);
    expect(await box.finish(1, "commit")).toEqual({ outcome: "committed" });
    expect((await box.left()).lease).toBe("free");
    vi.setSystemTime(now + 4 * day);
    await box.berth.ring(box.id);
    await soon(async () => expect((await box.api.get()).state).toBe("paused"));
  });

  it("[PL55] keeps its place in the queue when its object is lost while it waits", async () => {
    const box = await Box.member();
    const busy = await granted(box.api.acquireLease({ holder: "busy", ttlMs: 60_000 }));
    const cut = box.hold(1, 20_000).catch(() => "cut");
    await waiting(box, 1);
    const behind = box.api.acquireLease({ holder: "behind", waitMs: 0, queueMs: 60_000 });
    const { ticket } = (await behind) as { ticket: string };
    box.crash();
    const again = box.hold(1, 20_000);
    await waiting(box, 2);
    await box.api.releaseLease(busy);
    expect(await again).toBeNull();
    await box.prepare(1);
    await box.finish(1, "commit");
    await granted(box.api.acquireLease({ holder: "behind", ticket, waitMs: 10_000 }));
    expect(await holders(box)).toEqual(["busy", "plan:release", "behind"]);
    void cut;
  });

  it("[PL59] taken away before the vote, the run has nothing here and leaves nothing", async () => {
    const taken = { code: "lease_lost" };
    for (const [name, take] of Object.entries({
      broken: (box: Box) => box.api.breakLease("now"),
      forced: (box: Box) => box.api.pause({ force: true }),
    })) {
      const held = await Box.committed();
      const before = await held.left();
      await held.hold(2);
      await take(held);
      expect(await held.hold(2)).toMatchObject({ ...taken, facts: { reason: name } });
      expect(await held.prepare(2)).toMatchObject({ ...taken, facts: { reason: name } });
      expect(await held.finish(2, "abort")).toEqual({ outcome: "aborted" });
      await soon(async () => expect(await held.left()).toEqual(before));
    }
    const saving = await Box.committed();
    const before = await saving.left();
    await saving.hold(2);
    saving.machine.fault = { verb: "snapshot", hold: true };
    const preparing = saving.prepare(2);
    await soon(() => expect(saving.machine.held.size).toBe(1));
    await saving.api.breakLease("now");
    saving.machine.release();
    expect(await preparing).toMatchObject(taken);
    expect(await saving.finish(2, "abort")).toEqual({ outcome: "aborted" });
    await soon(async () => expect(await saving.left()).toEqual(before));
  });

  it("[PL111] whoever has no lease is refused at once while the files are saved, and may wait if he says so", async () => {
    // From the beginning: an object has timers on their way, and waits for them.
    vi.useFakeTimers({
      toFake: ["setTimeout", "clearTimeout", "performance", "Date"],
      shouldAdvanceTime: true,
    });
    const box = await Box.committed();
    await box.hold(2);
    box.machine.fault = { verb: "snapshot", hold: true };
    const preparing = box.prepare(2);
    await soon(() => expect(box.machine.held.size).toBe(1));
    await expect(box.write("a.txt", "mine")).rejects.toMatchObject({ code: "lease_held" });
    await expect(box.api.exec({ command: "true" })).rejects.toMatchObject({ code: "lease_held" });
    const waiting = box.api.exec({ command: "true" }, { waitMs: 10_000 });
    box.machine.release();
    expect(await preparing).toMatchObject({ yes: {} });
    await box.finish(2, "abort");
    expect(await waiting).toMatchObject({ exitCode: 0 });
  });

  it("[PL59] taken away after the vote, what was saved is committed, and what came later is later work", async () => {
    const box = await Box.committed();
    await box.hold(2);
    const vote = await box.prepare(2);
    await box.api.breakLease("now");
    await soon(async () => expect((await box.api.lease()).state).toBe("free"));
    const token = await granted(box.api.acquireLease({ holder: "later" }));
    await box.write("a.txt", "later", token);
    expect(await box.finish(2, "commit")).toEqual({ outcome: "committed" });
    const { committed, lease } = await box.left();
    expect([vote, lease]).toMatchObject([{ yes: { checkpoint: committed[0] } }, "held"]);
    expect(box.files).toEqual({ "/workspace/a.txt": "later" });
    await box.api.releaseLease(token);
  });
});

describe("a member whose place another is to take", () => {
  const scope = { repo: "github.com/members/replaced", branch: "main" };
  const replace = { scope, onExisting: "replace" as const };

  it("[D3] is not ended while its plan commits, and can be when that is over", async () => {
    const box = await Box.member({ scope });
    const local = box.berth.bind({ tenant: "local" });
    await box.hold(1);
    await box.prepare(1);
    const facts = { holder: "plan:release", sandbox: box.id };
    await expect(local.create(replace)).rejects.toMatchObject({ code: "lease_held", facts });
    await expect(box.api.destroy()).rejects.toMatchObject({ code: "lease_held" });
    expect(await box.finish(1, "commit")).toMatchObject({ outcome: "committed" });
    expect((await local.create({ scope })).id).toBe(box.id);
    expect(await local.create(replace)).toMatchObject({ replaced: box.id });
    expect((await box.api.get()).state).toMatch(/^destroy/);
  });

  it("[D3] is ended by force, and the run ends without it", async () => {
    const box = await Box.member({ scope });
    const local = box.berth.bind({ tenant: "local" });
    await box.hold(1);
    await box.prepare(1);
    expect(await local.create(replace, { force: true })).toMatchObject({ replaced: box.id });
    expect(await box.finish(1, "abort")).toMatchObject({ error: { code: "sandbox_destroyed" } });
  });

  it("[D3] is ended by nobody without the right to end sandboxes", async () => {
    const box = await Box.member({ scope });
    const weak = box.berth.bind({ tenant: "local", rights: ["read", "exec", "lease"] });
    for (const force of [false, true]) {
      const refused = weak.create(replace, { force });
      await expect(refused).rejects.toMatchObject({ code: "forbidden" });
    }
    expect((await weak.create({ scope })).id).toBe(box.id);
  });

  it("[D16] is not ended for one that its object could not make", async () => {
    const box = await Box.member({ scope });
    const local = box.berth.bind({ tenant: "local" });
    const network = { internet: true, allow: ["example.org"] };
    for (const force of [false, true]) {
      const refused = local.create({ ...replace, network }, { force });
      await expect(refused).rejects.toMatchObject({ code: "unsupported" });
    }
    expect((await local.create({ scope })).id).toBe(box.id);
  });
});
