/** Rows of every earlier version open in this one; rows of a newer version are refused. */
import { describe, expect, it } from "vitest";
import { migrate as migrateDirectory } from "../../../src/objects/directory/migrations.ts";
import { migrate as migratePlan } from "../../../src/objects/plan/migrations.ts";
import {
  migrate as migrateSandbox,
  newestVersion,
} from "../../../src/objects/sandbox/migrations.ts";
import type { BerthApi } from "../../../src/protocol/api.ts";
import { FakeBerth } from "../../fakes/berth.ts";
import { type Formerly, newestOf, writeOlderRows } from "./older.ts";

const scope = { repo: "github.com/a/b", branch: "main", config: "berth.toml" };
const formerly: Formerly = {
  "directory.epoch": () => "the draw of a Directory",
  "sandbox.over": (row) => row.gone,
  "meta.over": (row) => row.gone,
};

const versions = (newest: number) => Array.from({ length: newest }, (_, n) => n + 1);

/** Fills each table of a sandbox, its Directory and its plan. */
async function story() {
  const berth = new FakeBerth();
  const local = berth.bind({ tenant: "local" });
  const { id } = await local.create(
    { waitMs: 10_000, scope, metadata: { owner: "ci" }, env: { A: "1" } },
    { idempotencyKey: "key-of-the-create" },
  );
  const box = local.sandbox(id);
  await box.exec({ command: "true" }, { idempotencyKey: "key-of-a-command" });
  await box.patchMetadata({ stage: "test" });
  await box.makeCheckpoint({ name: "first" });
  await box.createTicket();
  const object = berth.object(id);
  const caller = { tenant: "local", rights: ["admin"] } as never;
  await object.callVerb("openPort", caller, { call: { port: 3000, wake: false } } as never, "open");
  await local.plan("release").put();
  await local.plan("release").putMember("web", { sandboxId: id });
  await box.pause();
  await box.acquireLease({ holder: "me", ttlMs: 300_000 });
  return { berth, local, id, lists: await listsOf(local), seen: await seenOf(berth, local, id) };
}

async function seenOf(berth: FakeBerth, local: BerthApi, id: string) {
  const box = local.sandbox(id);
  const caller = { tenant: "local", rights: ["admin"] } as never;
  const { plan, ...view } = await box.get();
  return {
    view,
    plan,
    metadata: await box.metadata(),
    lease: await box.lease(),
    events: await box.events({ limit: 1000 }),
    checkpoints: await box.checkpoints(),
    ports: await berth.object(id).callVerb("listPorts", caller, {}, "ports"),
  };
}

async function listsOf(local: BerthApi) {
  return {
    all: await local.list({}),
    ofStage: await local.list({ metadata: ["stage=test"] }),
    ofRepo: await local.list({ "scope.repo": scope.repo }),
    counts: await local.counts(),
    events: await local.events(),
  };
}

describe.each(versions(newestOf(migrateSandbox)))("rows of version %i of a sandbox", (version) => {
  it("[S35] open unchanged, and continue to work", async () => {
    const { berth: before, id, seen } = await story();
    const dump = before.dump(id);
    const berth = new FakeBerth();
    const had = writeOlderRows(berth, id, { migrate: migrateSandbox, version, dump });
    const local = berth.bind({ tenant: "local" });
    expect(await seenOf(berth, local, id)).toEqual({
      ...seen,
      plan: had.has("seat") ? seen.plan : undefined,
      checkpoints: had.has("checkpoint") ? seen.checkpoints : { checkpoints: [], nextCursor: null },
      ports: had.has("port") ? seen.ports : { ok: { ports: [], nextCursor: null } },
    });
    const after = berth.dump(id);
    expect(after.get("schema_version")).toEqual([{ version: newestVersion }]);
    expect(after.get("connect_ticket")).toMatchObject([
      { rights: version < 3 ? '["lease"]' : expect.stringContaining("admin") },
    ]);
    // A change that was never reported is reported now.
    expect(after.get("listing")).toHaveLength(1);
    const box = local.sandbox(id);
    expect((await box.patchMetadata({ later: "1" })).version).toBe(seen.metadata.version + 1);
    await box.breakLease("a test");
    expect((await box.exec({ command: "printenv A" })).stdout).toBe("1\n");
  });
});

describe.each(versions(newestOf(migrateDirectory)))(
  "rows of version %i of a Directory",
  (version) => {
    it("[S35] open unchanged, and continue to work", async () => {
      const { berth: before, id, lists } = await story();
      const berth = new FakeBerth();
      const sandbox = { migrate: migrateSandbox, version: newestVersion, dump: before.dump(id) };
      writeOlderRows(berth, id, sandbox);
      const dump = before.dump("local");
      writeOlderRows(berth, "local", { migrate: migrateDirectory, version, dump, formerly });
      const local = berth.bind({ tenant: "local" });
      expect(await listsOf(local)).toEqual(lists);
      const call = { waitMs: 10_000, scope, metadata: { owner: "ci" }, env: { A: "1" } };
      expect((await local.create({ scope, start: false })).id).toBe(id);
      const repeated = local.create(call, { idempotencyKey: "key-of-the-create" });
      expect((await repeated).id).toBe(id);
      expect((await local.plans({})).plans).toHaveLength(version < 3 ? 0 : 1);
      await local.plan("another").put();
      expect((await local.plans({})).plans.map(({ name }) => name)).toContain("another");
    });
  },
);

describe.each(versions(newestOf(migratePlan)))("rows of version %i of a plan", (version) => {
  it("[S35] open unchanged", async () => {
    const { berth, local, id } = await story();
    const name = "local/release";
    const seen = await local.plan("release").get();
    expect(seen.members).toMatchObject([{ key: "web", sandbox: id }]);
    const dump = berth.dump(name);
    await berth.evict(name);
    for (const table of dump.keys()) berth.rows(name, `DROP TABLE ${table}`);
    writeOlderRows(berth, name, { migrate: migratePlan, version, dump });
    expect(await local.plan("release").get()).toEqual(seen);
  });
});

describe("rows of a newer version", () => {
  it.each(["sandbox", "Directory", "plan"])(
    "[S35] of a %s are refused and left as they are",
    async (kind) => {
      const { berth, local, id } = await story();
      const name = { sandbox: id, Directory: "local", plan: "local/release" }[kind] ?? "";
      await berth.evict(name);
      berth.rows(name, "UPDATE schema_version SET version = version + 1");
      const before = berth.dump(name);
      const ask = {
        sandbox: () => local.sandbox(id).get(),
        Directory: () => local.list({}),
        plan: () => local.plan("release").get(),
      }[kind];
      await expect(ask?.()).rejects.toThrow(/version \d+.*Deploy the newer program/);
      expect(berth.dump(name)).toEqual(before);
    },
  );
});
