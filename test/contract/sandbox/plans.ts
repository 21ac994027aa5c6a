/**
 * Owns what the suite says of plans: sandboxes that are committed or rolled back together, whichever way calls travel.
 * Does not own what becomes of runs that are cut short (test/plan).
 */
import { describe, expect, it } from "vitest";
import type { CommitInput } from "../../../src/protocol/plan.ts";
import type { PlanApi } from "../../../src/protocol/plan-api.ts";
import { made, refusal, refusals, saying, soon, type World } from "./world.ts";

let drawn = 0;
const newName = () => `plan-${Date.now().toString(36)}-${drawn++}`;
const text = (bytes: string) => new TextEncoder().encode(bytes);

export function planContract(world: World): void {
  const begun = async (name = newName()): Promise<PlanApi> => {
    const plan = world.berth.plan(name);
    await plan.put();
    return plan;
  };
  const write = (id: string, path: string, content: string) =>
    world.berth.sandbox(id).writeFile(path, text(content));
  const read = async (id: string, path: string) => {
    const { body } = await world.berth.sandbox(id).readFile(path);
    let content = "";
    for await (const chunk of body) content += new TextDecoder().decode(chunk);
    return content;
  };

  describe("plans", () => {
    it("[PL40] are made once and found after that, listed in pages by name, and gone when they are removed", async () => {
      const name = newName();
      const one = await world.berth.plan(`${name}.a`).put();
      expect(one).toMatchObject({ name: `${name}.a`, members: [] });
      expect(await world.berth.plan(`${name}.a`).put()).toEqual(one);
      await world.berth.plan(`${name}.b`).put();
      const first = await world.berth.plans({ limit: 1, cursor: name });
      expect(first.plans).toEqual([{ name: one.name, createdAt: one.createdAt }]);
      const second = await world.berth.plans({ limit: 1, cursor: first.nextCursor ?? "" });
      expect(second.plans.map((plan) => plan.name)).toEqual([`${name}.b`]);
      expect(await world.berth.plan(`${name}.a`).remove()).toEqual(one);
      expect(await refusal(world.berth.plan(`${name}.a`).get())).toMatchObject({
        code: "not_found",
      });
      const left = await world.berth.plans({ cursor: name });
      expect(left.plans.map((plan) => plan.name)).not.toContain(one.name);
      // Others do not see it, and have one of their own by the same name.
      const theirs = world.other.plan(`${name}.b`);
      expect(await refusal(theirs.get())).toMatchObject({ code: "not_found" });
      await theirs.put();
      await theirs.remove();
      expect((await world.berth.plan(`${name}.b`).remove()).name).toBe(`${name}.b`);
    });

    it("[PL41] that nobody made are not found by any verb", async () => {
      const { id } = await made(world, { start: false });
      const plan = world.berth.plan(newName());
      const calls = [
        plan.get(),
        plan.remove(),
        plan.putMember("a", { sandboxId: id }),
        plan.putMember("a", { create: { start: false } }),
        plan.removeMember("a"),
        plan.commit(),
        plan.rollback(),
        plan.commits(),
        plan.commitOf(1),
      ];
      const told = await refusals(calls);
      expect(told.map(({ code }) => code)).toEqual(calls.map(() => "not_found"));
    });

    it("[PL42] name the field of a bad call, and know no sandbox that is not the caller's", async () => {
      const plan = await begun();
      const bad = async (call: Promise<unknown>) => {
        const { code, facts } = await refusal(call);
        return [code, facts.field];
      };
      const wrong = (call: unknown) => plan.putMember("a", call as never);
      expect(await bad(world.berth.plan("a b").put())).toEqual(["bad_request", "plan"]);
      expect(await bad(plan.putMember("-", { sandboxId: "x" }))).toEqual(["bad_request", "key"]);
      expect(await bad(wrong({}))).toEqual(["bad_request", "sandboxId"]);
      expect(await bad(wrong({ sandboxId: "x" }))).toEqual(["bad_request", "sandboxId"]);
      expect(await bad(wrong({ create: { colour: "red" } }))).toEqual([
        "bad_request",
        "create.colour",
      ]);
      expect(await bad(wrong({ create: {}, sandboxId: "x" }))).toEqual([
        "bad_request",
        "sandboxId",
      ]);
      expect(await bad(plan.commit({ mode: "some" } as unknown as CommitInput))).toEqual([
        "bad_request",
        "mode",
      ]);
      expect(await bad(plan.commit({ waitMs: -1 }))).toEqual(["bad_request", "waitMs"]);
      expect(await bad(plan.rollback({ mode: "atomic" } as never))).toEqual([
        "bad_request",
        "mode",
      ]);
      expect(await bad(plan.commits({ limit: 0 }))).toEqual(["bad_request", "limit"]);
      expect(await bad(plan.commitOf(0.5))).toEqual(["bad_request", "n"]);
      expect(await bad(world.berth.plans({ limit: 0 }))).toEqual(["bad_request", "limit"]);
      const foreign = await world.other.create({ start: false });
      for (const sandboxId of [foreign.id, "k3v9q2m7x1c5b8n4tq0w8e2r"]) {
        const { code, message } = await refusal(plan.putMember("a", { sandboxId }));
        expect([code, message]).toEqual(["not_found", "No such sandbox for this key."]);
      }
      expect((await plan.get()).members).toEqual([]);
      await plan.remove();
    });

    saying(world, "compare")(
      "[PL43] commit the files of all members and bring them back, telling what changed in each",
      async () => {
        const plan = await begun();
        const { id } = await made(world);
        expect(await plan.putMember("own", { sandboxId: id })).toMatchObject({
          key: "own",
          sandbox: id,
          state: "member",
          committed: null,
        });
        const other = await plan.putMember("made", { create: { metadata: { of: "plan" } } });
        expect((await plan.putMember("made", { create: {} })).sandbox).toBe(other.sandbox);
        expect((await world.berth.sandbox(other.sandbox).get()).metadata).toEqual({ of: "plan" });
        await write(id, "a", "one");
        await write(other.sandbox, "b", "one");
        const first = await plan.commit();
        expect(first).toMatchObject({ commit: 1, kind: "commit", outcome: "committed" });
        expect(
          first.members.map(({ key, outcome, changes }) => [key, outcome, changes?.added]),
        ).toEqual([
          ["made", "committed", ["b"]],
          ["own", "committed", ["a"]],
        ]);
        expect(await plan.commitOf(1)).toEqual(first);
        expect((await plan.get()).members.map(({ committed }) => committed)).toEqual([1, 1]);
        expect(await refusal(plan.commit())).toMatchObject({
          code: "nothing_to_commit",
          facts: { commit: 2 },
        });
        await write(id, "a", "two");
        await write(other.sandbox, "c", "new");
        const back = await plan.rollback();
        expect(back).toMatchObject({ commit: 3, kind: "rollback", outcome: "rolled_back" });
        expect(await read(id, "a")).toBe("one");
        expect(await refusal(read(other.sandbox, "c"))).toMatchObject({ code: "file_not_found" });
        const { commits } = await plan.commits();
        expect(commits.map(({ commit, outcome }) => [commit, outcome])).toEqual([
          [3, "rolled_back"],
          [2, "aborted"],
          [1, "committed"],
        ]);
        await plan.remove({ sandboxes: "destroy" });
        await soon(async () => {
          for (const one of [id, other.sandbox]) {
            expect((await world.berth.sandbox(one).get()).state).toBe("destroyed");
          }
        });
      },
    );

    it("[PL44] are refused while somebody holds a member, naming both, and leave all as it was", async () => {
      const plan = await begun();
      const { id, box } = await made(world);
      await plan.putMember("held", { sandboxId: id });
      const { sandbox } = await plan.putMember("free", { create: {} });
      await write(id, "a", "work");
      const lease = await box.acquireLease({ holder: "somebody" });
      expect(await refusal(plan.commit({ waitMs: 50 }))).toMatchObject({
        code: "lease_held",
        facts: { commit: 1, key: "held", sandbox: id, holder: "somebody" },
      });
      expect((await plan.get()).members.map(({ committed }) => committed)).toEqual([null, null]);
      // The one that was free is free again, and the one that was held is held.
      expect(await world.berth.sandbox(sandbox).lease()).toMatchObject({ state: "free" });
      expect(await box.lease()).toMatchObject({ state: "held", holder: "somebody" });
      await box.releaseLease("token" in lease ? lease.token : "");
      const both = await Promise.all([plan.commit(), plan.commit()]);
      expect(both[0]).toMatchObject({ commit: 2, outcome: "committed" });
      expect(both[1]).toEqual(both[0]);
      await plan.remove({ sandboxes: "destroy" });
    });

    it("[PL45] have a sandbox for themselves: it is let go before another plan may have it", async () => {
      const plan = await begun();
      const next = await begun();
      const name = (await plan.get()).name;
      const { id } = await made(world, { start: false });
      await plan.putMember("a", { sandboxId: id });
      expect(await refusal(next.putMember("a", { sandboxId: id }))).toMatchObject({
        code: "in_other_plan",
        facts: { plan: name },
      });
      expect(await refusal(plan.putMember("b", { sandboxId: id }))).toMatchObject({
        code: "in_other_plan",
        facts: { plan: name, key: "a" },
      });
      const { id: young } = await made(world, { start: false });
      expect(await plan.putMember("a", { sandboxId: young })).toMatchObject({ replaced: id });
      await soon(async () => {
        expect(await next.putMember("a", { sandboxId: id })).toMatchObject({ sandbox: id });
      });
      expect(await plan.removeMember("a", { sandbox: "destroy" })).toMatchObject({
        sandbox: young,
      });
      await soon(async () => {
        expect((await world.berth.sandbox(young).get()).state).toBe("destroyed");
      });
      expect(await refusal(plan.removeMember("a"))).toMatchObject({ code: "not_found" });
      expect(await refusal(plan.putMember("a", { sandboxId: young }))).toMatchObject({
        code: "sandbox_destroyed",
      });
      await plan.remove();
      await next.remove({ sandboxes: "destroy" });
    });

    it("[PL135] end no member that somebody holds, with its place or with the plan, unless they are told to", async () => {
      const plan = await begun();
      const { id, box } = await made(world, { start: false });
      await plan.putMember("held", { sandboxId: id });
      const { sandbox } = await plan.putMember("free", { create: { start: false } });
      await box.acquireLease({ holder: "somebody", ttlMs: 300_000 });
      const before = await plan.get();
      const facts = { key: "held", sandbox: id, holder: "somebody" };
      const out = plan.removeMember("held", { sandbox: "destroy" });
      expect(await refusal(out)).toMatchObject({ code: "lease_held", facts });
      const end = plan.remove({ sandboxes: "destroy", force: false });
      expect(await refusal(end)).toMatchObject({ code: "lease_held", facts });
      expect(await plan.get()).toEqual(before);
      expect(await box.lease()).toMatchObject({ state: "held", holder: "somebody" });
      const bad = plan.remove({ force: "perhaps" } as never);
      expect(await refusal(bad)).toMatchObject({ code: "bad_request", facts: { field: "force" } });
      expect(await plan.removeMember("held", { sandbox: "destroy", force: true })).toMatchObject({
        sandbox: id,
      });
      await plan.remove({ sandboxes: "destroy" });
      await soon(async () => {
        for (const one of [id, sandbox]) {
          expect((await world.berth.sandbox(one).get()).state).toBe("destroyed");
        }
      });
    });

    it("[PL46] know a commit by its key", async () => {
      const plan = await begun();
      await plan.putMember("a", { create: {} });
      const options = { idempotencyKey: `key-${drawn++}` };
      const one = await plan.commit({ allowEmpty: true }, options);
      expect(one).toMatchObject({ commit: 1, outcome: "committed" });
      expect(await plan.commit({ allowEmpty: true, waitMs: 5 }, options)).toEqual(one);
      expect(await refusal(plan.commit({}, options))).toMatchObject({
        code: "idempotency_mismatch",
      });
      await plan.remove({ sandboxes: "destroy" });
    });

    saying(world, "evict")(
      "[PL47] keep all of it when their objects are evicted between two calls",
      async () => {
        const name = newName();
        const plan = await begun(name);
        const { sandbox } = await plan.putMember("a", { create: {} });
        await write(sandbox, "a", "one");
        const one = await plan.commit();
        const before = await plan.get();
        await world.evict(`local/${name}`);
        expect(await plan.get()).toEqual(before);
        expect(await plan.commitOf(1)).toEqual(one);
        await plan.remove({ sandboxes: "destroy" });
      },
    );
  });
}
