/** A step of a plan that cannot be written has not happened: the same step succeeds when there is room again. */
import { describe, expect, it } from "vitest";
import { useFakeTimers } from "../sandbox/harness.ts";
import { FakeSandbox } from "./fake-sandbox.ts";

useFakeTimers();

/** Simulates a full disk: the write fails and the instance continues. */
async function withFullDisk(
  sandbox: FakeSandbox,
  write: string,
  work: () => Promise<unknown>,
): Promise<void> {
  const fails = "SELECT RAISE(FAIL, 'SQLITE_FULL')";
  sandbox.berth.rows(sandbox.id, `CREATE TRIGGER no_room BEFORE ${write} BEGIN ${fails}; END`);
  await expect(work()).rejects.toThrow("SQLITE_FULL");
  sandbox.berth.rows(sandbox.id, "DROP TRIGGER no_room");
}

describe("a step of a plan that cannot be written", () => {
  it("[PL143] to join, has no effect: the same request joins", async () => {
    const sandbox = await FakeSandbox.member();
    await sandbox.leave();
    const move = sandbox.nextMove();
    await withFullDisk(sandbox, "INSERT ON seat", () => sandbox.joinBy(move, 0));
    expect(await sandbox.joinBy(move, 0)).toBeNull();
    expect(await sandbox.api.get()).toMatchObject({ plan: "release" });
  });

  it("[PL143] to leave, has no effect: the same request leaves", async () => {
    const sandbox = await FakeSandbox.member();
    const move = sandbox.nextMove();
    await withFullDisk(sandbox, "DELETE ON seat", () => sandbox.leaveBy(move));
    expect(await sandbox.leaveBy(move)).toBeNull();
    expect(await sandbox.api.get()).not.toHaveProperty("plan");
  });

  it.each(["INSERT ON event", "UPDATE ON sandbox", "INSERT ON listing"])(
    "[PL143] to roll back, does not start: the same request rolls back (%s)",
    async (write) => {
      const sandbox = await FakeSandbox.committed();
      await sandbox.write("a.txt", "two");
      expect(await sandbox.hold(2)).toBeNull();
      expect(await sandbox.prepare(2, "rollback")).toMatchObject({ yes: {} });
      await withFullDisk(sandbox, write, () => sandbox.finish(2, "roll_back"));
      expect(await sandbox.finish(2, "roll_back")).toEqual({ outcome: "rolled_back" });
      expect(sandbox.files).toEqual({ "/workspace/a.txt": "one" });
      expect(await sandbox.remainingResources()).toMatchObject({ lease: "free", trees: 1 });
    },
  );

  it.each([`INSERT ON event WHEN NEW.data LIKE '{"type":"lease%'`, "UPDATE ON checkpoint"])(
    "[PL143] to release a lease or checkpoint, is completed by the same request (%s)",
    async (write) => {
      const sandbox = await FakeSandbox.committed();
      await sandbox.write("a.txt", "two");
      expect(await sandbox.hold(2)).toBeNull();
      expect(await sandbox.prepare(2)).toMatchObject({ yes: {} });
      await withFullDisk(sandbox, write, () => sandbox.finish(2, "commit"));
      expect(await sandbox.finish(2, "commit")).toEqual({ outcome: "committed" });
      await sandbox.write("a.txt", "three");
      expect(await sandbox.remainingResources()).toMatchObject({ lease: "free", trees: 1 });
    },
  );
});

describe("a change that cannot be written", () => {
  it("[D33] has no revision: only stored revisions are reported", async () => {
    const sandbox = await FakeSandbox.member();
    const revision = () => sandbox.berth.dump(sandbox.id).get("listing")?.[0]?.revision;
    const before = revision();
    await withFullDisk(sandbox, "INSERT ON listing", () =>
      sandbox.api.patchMetadata({ color: "red" }),
    );
    await sandbox.berth.ringAlarm(sandbox.id);
    await sandbox.evict();
    expect(revision()).toBe(before);
    expect(await sandbox.api.patchMetadata({ color: "blue" })).not.toHaveProperty("listed");
    const { sandboxes } = await sandbox.berth.bind({ tenant: "local" }).list();
    expect(sandboxes).toMatchObject([{ metadata: { color: "blue" } }]);
  });
});
