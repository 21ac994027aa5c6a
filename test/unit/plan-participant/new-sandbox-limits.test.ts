/** The arguments of a new sandbox are stored in one row and therefore bounded in total, however it is created. */
import { describe, expect, it } from "vitest";
import type { Env } from "../../../src/config.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { rights } from "../../../src/protocol/rights.ts";
import { createCallSchema } from "../../../src/protocol/sandbox.ts";
import { newSandbox } from "../../../src/worker/special/new-sandbox.ts";
import { FakeBerth } from "../../fakes/berth.ts";
import { startSandbox } from "../sandbox/harness.ts";

const refusedEnv = { code: "bad_request", facts: { field: "env" } };

/** An environment of the maximum size as JSON, plus `more` bytes. */
function envOf(more: number): Record<string, string> {
  const env: Record<string, string> = {};
  let left = limits.sandboxEnvBytesMax + more - 1;
  for (let n = 100; left > 0; n++) {
    const overhead = `"V${n}":"",`.length;
    const text = Math.min(limits.envValueBytesMax, left - overhead);
    env[`V${n}`] = "x".repeat(text);
    left -= overhead + text;
  }
  return env;
}

describe("a new sandbox", () => {
  it("[S26] has a limit for its whole environment, by itself or as a member of a plan", async () => {
    const local = new FakeBerth().bind({ tenant: "local" });
    const [most, more] = [envOf(0), envOf(1)];
    expect(JSON.stringify(most)).toHaveLength(limits.sandboxEnvBytesMax);
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

  it("[S26] measures its environment as JSON: an escape counts all its characters, a letter its bytes", async () => {
    const local = new FakeBerth().bind({ tenant: "local" });
    for (const [letter, bytes] of [
      ["\n", 2],
      ["\u0001", 6],
      ["ä", 2],
    ] as const) {
      const count = limits.sandboxEnvBytesMax / bytes / 16;
      const env = Object.fromEntries(
        Array.from({ length: 16 }, (_, n) => [`V${n}`, letter.repeat(count)]),
      );
      await expect(local.create({ env, start: false })).rejects.toMatchObject(refusedEnv);
    }
  });

  it("[S26] has the same limits as a fork, including what it inherits", async () => {
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

  it("[S26] stores no metadata keys that only delete", async () => {
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
    "[S27] stays as it was, in memory and in its rows, if a table cannot be written (%s)",
    async (table) => {
      const { berth, id, sandbox } = await startSandbox({ metadata: { a: "1" }, start: false });
      const before = [await sandbox.get(), await sandbox.metadata(), await sandbox.events()];
      for (const how of ["INSERT", "UPDATE"]) {
        const full = "BEGIN SELECT RAISE(ABORT, 'full'); END";
        berth.rows(id, `CREATE TRIGGER full_${how} BEFORE ${how} ON ${table} ${full}`);
      }
      await expect(sandbox.patchMetadata({ a: "2" })).rejects.toThrow("full");
      expect([await sandbox.get(), await sandbox.metadata(), await sandbox.events()]).toEqual(
        before,
      );
      await berth.evict(id);
      expect([await sandbox.get(), await sandbox.metadata(), await sandbox.events()]).toEqual(
        before,
      );
      for (const how of ["INSERT", "UPDATE"]) berth.rows(id, `DROP TRIGGER full_${how}`);
      expect(await sandbox.patchMetadata({ a: "2" })).toMatchObject({ metadata: { a: "2" } });
    },
  );
});
