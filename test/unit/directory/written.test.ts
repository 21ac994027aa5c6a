/** A write that fails has no effect: the rows contain neither part of a decision nor part of a report. */
import { DatabaseSync } from "node:sqlite";
import { beforeEach, describe, expect, it } from "vitest";
import type { SqlValue } from "../../../src/objects/shared/host.ts";
import { DirectoryHarness } from "./harness.ts";

/** Makes statements that contain the text fail, as if the disk were full; the instance continues. */
let full: string | undefined;

class FullDesk extends DirectoryHarness {
  override sql<Row extends Record<string, SqlValue>>(query: string, ...bindings: SqlValue[]) {
    if (full !== undefined && query.includes(full)) throw new Error("SQLITE_FULL");
    return super.sql<Row>(query, ...bindings);
  }
}

let harness: DirectoryHarness;

beforeEach(() => {
  full = undefined;
  harness = new FullDesk();
});

describe("a disk that is full", () => {
  it.each(["INTO scope", "INTO keyed", "INTO sandbox"])(
    "[D32] leaves no part of a find-or-create (%s)",
    async (statement) => {
      full = statement;
      await expect(harness.findOrCreate({ scope: "app", key: "k" })).rejects.toThrow("SQLITE_FULL");
      full = undefined;
      const { made, sandbox } = await harness.findOrCreate({ scope: "app", key: "k" });
      expect(made).toBe(true);
      expect(harness.sql("SELECT id FROM sandbox")).toEqual([{ id: sandbox.id }]);
      harness.now += 600_000;
      while (await harness.ring());
      expect(harness.calls).toEqual([`make ${sandbox.id}`]);
    },
  );

  it.each(["INTO meta", "INTO event", "DELETE FROM scope"])(
    "[D32] leaves no part of a report, which is applied completely when it is repeated (%s)",
    async (statement) => {
      const { sandbox } = await harness.findOrCreate({ scope: "app" });
      const box = harness.box(sandbox.id);
      box.metadata = { color: "red" };
      box.events = [
        { seq: 1, at: "2026-01-01T00:00:00Z", event: { type: "state", state: "paused" } },
      ];
      box.become("destroying");
      full = statement;
      expect(() => box.sendReport()).toThrow("SQLITE_FULL");
      full = undefined;
      box.sendReport();
      expect(harness.row(sandbox.id)).toMatchObject({ state: "destroying", event_seq: 1 });
      expect(harness.sql("SELECT k, v FROM meta")).toEqual([{ k: "color", v: "red" }]);
      expect(harness.sql("SELECT sandbox FROM event")).toEqual([{ sandbox: sandbox.id }]);
      expect(harness.current("app")).toBeUndefined();
    },
  );

  it("[D32] leaves no part of its tables, which are created when there is room again", async () => {
    const rows = new DatabaseSync(":memory:");
    const place = new FullDesk();
    Object.assign(place, { rows });
    full = "CREATE TABLE event";
    expect(() => place.restart()).toThrow("SQLITE_FULL");
    full = undefined;
    place.restart();
    expect((await place.findOrCreate({ scope: "app" })).made).toBe(true);
  });
});
