/** What a new sandbox is made of is kept in one row, and so bounded as a whole, whichever way it is made. */
import { describe, expect, it } from "vitest";
import type { Env } from "../../../src/config.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { rights } from "../../../src/protocol/rights.ts";
import { createCallSchema } from "../../../src/protocol/sandbox.ts";
import { newSandbox } from "../../../src/worker/special/new-sandbox.ts";
import { FakeBerth } from "../../fakes/berth.ts";

const refusedEnv = { code: "bad_request", facts: { field: "env" } };

/** As much as there may be as JSON, and so many bytes more. */
function envOf(more: number): Record<string, string> {
  const env: Record<string, string> = {};
  let left = limits.envKeptBytesMax + more - 1;
  for (let n = 100; left > 0; n++) {
    const around = `"V${n}":"",`.length;
    const text = Math.min(limits.envValueBytesMax, left - around);
    env[`V${n}`] = "x".repeat(text);
    left -= around + text;
  }
  return env;
}

describe("a new sandbox", () => {
  it("[S26] may have so much environment in all, and not a byte more, by itself or as a member of a plan", async () => {
    const local = new FakeBerth().bind({ tenant: "local" });
    const [most, more] = [envOf(0), envOf(1)];
    expect(JSON.stringify(most)).toHaveLength(limits.envKeptBytesMax);
    expect(await local.create({ env: most, start: false })).toMatchObject({ state: "paused" });
    await expect(local.create({ env: more, start: false })).rejects.toMatchObject(refusedEnv);
    const plan = local.plan("release");
    await plan.put();
    await expect(plan.putMember("a", { create: { env: more } })).rejects.toMatchObject({
      code: "bad_request",
      facts: { field: "create.env" },
    });
    expect((await plan.get()).members).toEqual([]);
    await plan.putMember("a", { create: { env: most, start: false } });
    expect((await plan.get()).members).toHaveLength(1);
  });

  it("[S26] counts what a text is as JSON: a line end is two characters, a letter of another alphabet its bytes", async () => {
    const local = new FakeBerth().bind({ tenant: "local" });
    for (const [letter, bytes] of [
      ["\n", 2],
      ["\u0001", 6],
      ["ä", 2],
    ] as const) {
      const count = limits.envKeptBytesMax / bytes / 16;
      const env = Object.fromEntries(
        Array.from({ length: 16 }, (_, n) => [`V${n}`, letter.repeat(count)]),
      );
      await expect(local.create({ env, start: false })).rejects.toMatchObject(refusedEnv);
    }
  });

  it("[S26] has no more of it as a fork, what it inherits included, nor more variables", async () => {
    const local = new FakeBerth().bind({ tenant: "local" });
    const origin = await local.create({ env: envOf(0), waitMs: 10_000 });
    const { id: from } = await local.sandbox(origin.id).makeCheckpoint();
    expect(await local.create({ from, start: false })).toMatchObject({ state: "paused" });
    const many = Object.fromEntries(
      Array.from({ length: limits.envCountMax }, (_, n) => [`W${n}`, ""]),
    );
    for (const env of [{ MORE: "x" }, many]) {
      await expect(local.create({ from, env, start: false })).rejects.toMatchObject(refusedEnv);
    }
    expect((await local.list()).sandboxes).toHaveLength(2);
  });

  it("[S26] keeps no metadata that only takes away what there is not", async () => {
    const none = Object.fromEntries(
      Array.from({ length: 30_000 }, (_, n) => [`${n}`.padEnd(100, "x"), n % 2 ? null : ""]),
    );
    const call = createCallSchema.parse({ metadata: { ...none, kept: "yes" } });
    const env = { BERTH_SECRET: "the secret of a Berth in memory, which guards nothing" };
    const { make } = await newSandbox(env as Env, { tenant: "local", rights }, call, {});
    expect(make.metadata).toEqual({ kept: "yes" });
  });
});

describe("a sandbox", () => {
  it.each(["metadata", "event", "listing"])(
    "[S27] of which something cannot be written (%s) is as it was, in memory and in its rows",
    async (table) => {
      const berth = new FakeBerth();
      const { id } = await berth
        .bind({ tenant: "local" })
        .create({ metadata: { a: "1" }, start: false });
      const box = berth.bind({ tenant: "local" }).sandbox(id);
      const before = [await box.get(), await box.metadata(), await box.events()];
      for (const how of ["INSERT", "UPDATE"]) {
        const full = "BEGIN SELECT RAISE(ABORT, 'full'); END";
        berth.rows(id, `CREATE TRIGGER full_${how} BEFORE ${how} ON ${table} ${full}`);
      }
      await expect(box.patchMetadata({ a: "2" })).rejects.toThrow("full");
      expect([await box.get(), await box.metadata(), await box.events()]).toEqual(before);
      await berth.evict(id);
      expect([await box.get(), await box.metadata(), await box.events()]).toEqual(before);
      for (const how of ["INSERT", "UPDATE"]) berth.rows(id, `DROP TRIGGER full_${how}`);
      expect(await box.patchMetadata({ a: "2" })).toMatchObject({ metadata: { a: "2" } });
    },
  );
});
