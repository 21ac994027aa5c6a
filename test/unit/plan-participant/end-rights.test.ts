import { describe, expect, it } from "vitest";
import { FakeBerth } from "../../fakes/berth.ts";

describe("who takes a member out of its plan", () => {
  it("[PL135] must have the right to end sandboxes to end it with that, by force or not", async () => {
    const berth = new FakeBerth();
    const all = berth.bind({ tenant: "local" }).plan("release");
    await all.put();
    const { sandbox } = await all.putMember("m", { create: { start: false } });
    const other = berth.bind({ tenant: "local", rights: ["read", "exec"] }).plan("release");
    for (const force of [false, true]) {
      const out = other.removeMember("m", { sandbox: "destroy", force });
      await expect(out).rejects.toMatchObject({ code: "forbidden" });
      const end = other.remove({ sandboxes: "destroy", force });
      await expect(end).rejects.toMatchObject({ code: "forbidden" });
    }
    expect((await all.get()).members).toMatchObject([{ key: "m", sandbox }]);
    await all.remove({ sandboxes: "destroy" });
  });
});
