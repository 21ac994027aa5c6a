/** A sandbox that cannot write a step of its plan has not done it: the same step does it when there is room again. */
import { describe, expect, it } from "vitest";
import { timersOfOurs } from "../sandbox/timers.ts";
import { Box } from "./fake-sandbox.ts";

timersOfOurs();

/** As a disk without room: the write fails, and the instance lives on. */
async function without(box: Box, write: string, work: () => Promise<unknown>): Promise<void> {
  const fails = "SELECT RAISE(FAIL, 'SQLITE_FULL')";
  box.berth.rows(box.id, `CREATE TRIGGER no_room BEFORE ${write} BEGIN ${fails}; END`);
  await expect(work()).rejects.toThrow("SQLITE_FULL");
  box.berth.rows(box.id, "DROP TRIGGER no_room");
}

describe("a step of a plan that cannot be written", () => {
  it("[PL143] to join, is not heard: the same word joins", async () => {
    const box = await Box.member();
    await box.leave();
    const move = box.nextMove();
    await without(box, "INSERT ON seat", () => box.joinBy(move, 0));
    expect(await box.joinBy(move, 0)).toBeNull();
    expect(await box.api.get()).toMatchObject({ plan: "release" });
  });

  it("[PL143] to leave, is not heard: the same word frees it", async () => {
    const box = await Box.member();
    const move = box.nextMove();
    await without(box, "DELETE ON seat", () => box.leaveBy(move));
    expect(await box.leaveBy(move)).toBeNull();
    expect(await box.api.get()).not.toHaveProperty("plan");
  });

  it.each(["INSERT ON event", "UPDATE ON sandbox", "INSERT ON listing"])(
    "[PL143] to go back, is not begun: the same word brings it back (%s)",
    async (write) => {
      const box = await Box.committed();
      await box.write("a.txt", "two");
      expect(await box.hold(2)).toBeNull();
      expect(await box.prepare(2, "rollback")).toMatchObject({ yes: {} });
      await without(box, write, () => box.finish(2, "roll_back"));
      expect(await box.finish(2, "roll_back")).toEqual({ outcome: "rolled_back" });
      expect(box.files).toEqual({ "/workspace/a.txt": "one" });
      expect(await box.left()).toMatchObject({ lease: "free", trees: 1 });
    },
  );

  it.each([`INSERT ON event WHEN NEW.data LIKE '{"type":"lease%'`, "UPDATE ON checkpoint"])(
    "[PL143] what it lets go is let go by the same step, told again (%s)",
    async (write) => {
      const box = await Box.committed();
      await box.write("a.txt", "two");
      expect(await box.hold(2)).toBeNull();
      expect(await box.prepare(2)).toMatchObject({ yes: {} });
      await without(box, write, () => box.finish(2, "commit"));
      expect(await box.finish(2, "commit")).toEqual({ outcome: "committed" });
      await box.write("a.txt", "three");
      expect(await box.left()).toMatchObject({ lease: "free", trees: 1 });
    },
  );
});

describe("a change that cannot be written", () => {
  it("[D33] has no revision: lists are told of none that does not stand in the rows", async () => {
    const box = await Box.member();
    const revision = () => box.berth.dump(box.id).get("listing")?.[0]?.revision;
    const before = revision();
    await without(box, "INSERT ON listing", () => box.api.patchMetadata({ color: "red" }));
    await box.berth.ring(box.id);
    await box.evict();
    expect(revision()).toBe(before);
    expect(await box.api.patchMetadata({ color: "blue" })).not.toHaveProperty("listed");
    const { sandboxes } = await box.berth.bind({ tenant: "local" }).list();
    expect(sandboxes).toMatchObject([{ metadata: { color: "blue" } }]);
  });
});
