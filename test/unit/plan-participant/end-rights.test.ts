import { describe, expect, it } from "vitest";
import { FakeBerth } from "../../fakes/berth.ts";

describe("a caller that removes a member from its plan", () => {
  it("[PL135] needs the right to end sandboxes to destroy it, by force or not", async () => {
    const berth = new FakeBerth();
    const all = berth.bind({ tenant: "local" }).plan("release");
    await all.put();
    const { sandbox } = await all.putMember("m", { create: { start: false } });
    const other = berth.bind({ tenant: "local", rights: ["read", "exec"] }).plan("release");
    for (const force of [false, true]) {
      const removing = other.removeMember("m", { sandbox: "destroy", force });
      await expect(removing).rejects.toMatchObject({ code: "forbidden" });
      const ending = other.remove({ sandboxes: "destroy", force });
      await expect(ending).rejects.toMatchObject({ code: "forbidden" });
    }
    expect((await all.get()).members).toMatchObject([{ key: "m", sandbox }]);
    await all.remove({ sandboxes: "destroy" });
  });
});
