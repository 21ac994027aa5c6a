/** The contract of plans. Interrupted runs are tested in test/unit/plan. */
import { describe, expect, it } from "vitest";
import type { PlanApi } from "../../../src/protocol/api.ts";
import type { CommitInput } from "../../../src/protocol/plan.ts";
import {
  createSandbox,
  eventually,
  expectRefusal,
  expectRefusals,
  itWith,
  refusal,
  type World,
} from "./world.ts";

let drawn = 0;
const newName = () => `plan-${Date.now().toString(36)}-${drawn++}`;
const text = (bytes: string) => new TextEncoder().encode(bytes);

export function planContract(world: World): void {
  const itEvicting = itWith(world, "evict");
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
    it("[PL40] are created once and found after that, listed in pages by name, and gone when removed", async () => {
      const name = newName();
      const created = await world.berth.plan(`${name}.a`).put();
      expect(created).toMatchObject({ name: `${name}.a`, members: [] });
      expect(await world.berth.plan(`${name}.a`).put()).toEqual(created);
      await world.berth.plan(`${name}.b`).put();
      const first = await world.berth.plans({ limit: 1, cursor: name });
      expect(first.plans).toEqual([{ name: created.name, createdAt: created.createdAt }]);
      const second = await world.berth.plans({ limit: 1, cursor: first.nextCursor ?? "" });
      expect(second.plans.map((plan) => plan.name)).toEqual([`${name}.b`]);
      expect(await world.berth.plan(`${name}.a`).remove()).toEqual(created);
      await expectRefusal(world.berth.plan(`${name}.a`).get(), "not_found");
      const left = await world.berth.plans({ cursor: name });
      expect(left.plans.map((plan) => plan.name)).not.toContain(created.name);
      // Other tenants do not see it, and can have one of the same name.
      const foreign = world.other.plan(`${name}.b`);
      await expectRefusal(foreign.get(), "not_found");
      await foreign.put();
      await foreign.remove();
      expect((await world.berth.plan(`${name}.b`).remove()).name).toBe(`${name}.b`);
    });

    it("[PL41] that nobody created are not found by any verb", async () => {
      const { id } = await createSandbox(world, { start: false });
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
      await expectRefusals(calls, "not_found");
    });

    it("[PL42] name the field of a bad call, and refuse foreign sandboxes like unknown ones", async () => {
      const plan = await begun();
      const member = (call: unknown) => plan.putMember("a", call as never);
      const bad: [field: string, call: () => PromiseLike<unknown>][] = [
        ["plan", () => world.berth.plan("a b").put()],
        ["key", () => plan.putMember("-", { sandboxId: "x" })],
        ["sandboxId", () => member({})],
        ["sandboxId", () => member({ sandboxId: "x" })],
        ["create.colour", () => member({ create: { colour: "red" } })],
        ["sandboxId", () => member({ create: {}, sandboxId: "x" })],
        ["mode", () => plan.commit({ mode: "some" } as unknown as CommitInput)],
        ["waitMs", () => plan.commit({ waitMs: -1 })],
        ["mode", () => plan.rollback({ mode: "atomic" } as never)],
        ["limit", () => plan.commits({ limit: 0 })],
        ["n", () => plan.commitOf(0.5)],
        ["limit", () => world.berth.plans({ limit: 0 })],
      ];
      for (const [field, call] of bad) await expectRefusals([call], "bad_request", { field });
      const foreign = await world.other.create({ start: false });
      for (const sandboxId of [foreign.id, "k3v9q2m7x1c5b8n4tq0w8e2r"]) {
        const { code, message } = await refusal(plan.putMember("a", { sandboxId }));
        expect([code, message]).toEqual(["not_found", "No such sandbox for this key."]);
      }
      expect((await plan.get()).members).toEqual([]);
      await plan.remove();
    });

    itWith(world, "compare")(
      "[PL43] commit the files of all members and restore them, listing what changed in each",
      async () => {
        const plan = await begun();
        const { id } = await createSandbox(world);
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
        await expectRefusal(plan.commit(), "nothing_to_commit", { commit: 2 });
        await write(id, "a", "two");
        await write(other.sandbox, "c", "new");
        const back = await plan.rollback();
        expect(back).toMatchObject({ commit: 3, kind: "rollback", outcome: "rolled_back" });
        expect(await read(id, "a")).toBe("one");
        await expectRefusal(read(other.sandbox, "c"), "file_not_found");
        const { commits } = await plan.commits();
        expect(commits.map(({ commit, outcome }) => [commit, outcome])).toEqual([
          [3, "rolled_back"],
          [2, "aborted"],
          [1, "committed"],
        ]);
        await plan.remove({ sandboxes: "destroy" });
        await eventually(async () => {
          for (const memberId of [id, other.sandbox]) {
            expect((await world.berth.sandbox(memberId).get()).state).toBe("destroyed");
          }
        });
      },
    );

    it("[PL44] are refused while a member is leased, naming both, and change nothing", async () => {
      const plan = await begun();
      const { id, box } = await createSandbox(world);
      await plan.putMember("held", { sandboxId: id });
      const { sandbox } = await plan.putMember("free", { create: {} });
      await write(id, "a", "work");
      const lease = await box.acquireLease({ holder: "somebody" });
      await expectRefusal(plan.commit({ waitMs: 50 }), "lease_held", {
        commit: 1,
        key: "held",
        sandbox: id,
        holder: "somebody",
      });
      expect((await plan.get()).members.map(({ committed }) => committed)).toEqual([null, null]);
      // The free one is free again, and the leased one is still leased.
      expect(await world.berth.sandbox(sandbox).lease()).toMatchObject({ state: "free" });
      expect(await box.lease()).toMatchObject({ state: "held", holder: "somebody" });
      await box.releaseLease("token" in lease ? lease.token : "");
      const both = await Promise.all([plan.commit(), plan.commit()]);
      expect(both[0]).toMatchObject({ commit: 2, outcome: "committed" });
      expect(both[1]).toEqual(both[0]);
      await plan.remove({ sandboxes: "destroy" });
    });

    it("[PL45] do not share a sandbox: it must leave one plan before it joins another", async () => {
      const plan = await begun();
      const next = await begun();
      const name = (await plan.get()).name;
      const { id } = await createSandbox(world, { start: false });
      await plan.putMember("a", { sandboxId: id });
      await expectRefusal(next.putMember("a", { sandboxId: id }), "in_other_plan", { plan: name });
      await expectRefusal(plan.putMember("b", { sandboxId: id }), "in_other_plan", {
        plan: name,
        key: "a",
      });
      const { id: young } = await createSandbox(world, { start: false });
      expect(await plan.putMember("a", { sandboxId: young })).toMatchObject({ replaced: id });
      await eventually(async () => {
        expect(await next.putMember("a", { sandboxId: id })).toMatchObject({ sandbox: id });
      });
      expect(await plan.removeMember("a", { sandbox: "destroy" })).toMatchObject({
        sandbox: young,
      });
      await eventually(async () => {
        expect((await world.berth.sandbox(young).get()).state).toBe("destroyed");
      });
      await expectRefusal(plan.removeMember("a"), "not_found");
      await expectRefusal(plan.putMember("a", { sandboxId: young }), "sandbox_destroyed");
      await plan.remove();
      await next.remove({ sandboxes: "destroy" });
    });

    it("[PL135] end no leased member, on its own or with the plan, unless forced", async () => {
      const plan = await begun();
      const { id, box } = await createSandbox(world, { start: false });
      await plan.putMember("held", { sandboxId: id });
      const { sandbox } = await plan.putMember("free", { create: { start: false } });
      await box.acquireLease({ holder: "somebody", ttlMs: 300_000 });
      const before = await plan.get();
      const facts = { key: "held", sandbox: id, holder: "somebody" };
      const out = plan.removeMember("held", { sandbox: "destroy" });
      await expectRefusal(out, "lease_held", facts);
      const end = plan.remove({ sandboxes: "destroy", force: false });
      await expectRefusal(end, "lease_held", facts);
      expect(await plan.get()).toEqual(before);
      expect(await box.lease()).toMatchObject({ state: "held", holder: "somebody" });
      const bad = plan.remove({ force: "perhaps" } as never);
      await expectRefusal(bad, "bad_request", { field: "force" });
      expect(await plan.removeMember("held", { sandbox: "destroy", force: true })).toMatchObject({
        sandbox: id,
      });
      await plan.remove({ sandboxes: "destroy" });
      await eventually(async () => {
        for (const memberId of [id, sandbox]) {
          expect((await world.berth.sandbox(memberId).get()).state).toBe("destroyed");
        }
      });
    });

    it("[PL46] recognise a commit by its key", async () => {
      const plan = await begun();
      await plan.putMember("a", { create: {} });
      const options = { idempotencyKey: `key-${drawn++}` };
      const first = await plan.commit({ allowEmpty: true }, options);
      expect(first).toMatchObject({ commit: 1, outcome: "committed" });
      expect(await plan.commit({ allowEmpty: true, waitMs: 5 }, options)).toEqual(first);
      await expectRefusal(plan.commit({}, options), "idempotency_mismatch");
      await plan.remove({ sandboxes: "destroy" });
    });

    itEvicting("[PL47] lose nothing when their objects are evicted between two calls", async () => {
      const name = newName();
      const plan = await begun(name);
      const { sandbox } = await plan.putMember("a", { create: {} });
      await write(sandbox, "a", "one");
      const first = await plan.commit();
      const before = await plan.get();
      await world.evict(`local/${name}`);
      expect(await plan.get()).toEqual(before);
      expect(await plan.commitOf(1)).toEqual(first);
      await plan.remove({ sandboxes: "destroy" });
    });
  });
}
