/** What a Directory cannot write has not happened: no half of a decision or of a report stands in its rows. */
import { DatabaseSync } from "node:sqlite";
import { beforeEach, describe, expect, it } from "vitest";
import type { SqlValue } from "../../../src/objects/shared/host.ts";
import { Desk } from "./harness.ts";

/** What is in the statement that finds the disk full; the instance lives on. */
let full: string | undefined;

class FullDesk extends Desk {
  override sql<Row extends Record<string, SqlValue>>(query: string, ...bindings: SqlValue[]) {
    if (full !== undefined && query.includes(full)) throw new Error("SQLITE_FULL");
    return super.sql<Row>(query, ...bindings);
  }
}

let desk: Desk;

beforeEach(() => {
  full = undefined;
  desk = new FullDesk();
});

describe("a disk that is full", () => {
  it.each(["INTO scope", "INTO keyed", "INTO sandbox"])(
    "[D32] leaves no half of a find-or-create (%s)",
    async (statement) => {
      full = statement;
      await expect(desk.find({ scope: "app", key: "k" })).rejects.toThrow("SQLITE_FULL");
      full = undefined;
      const { made, sandbox } = await desk.find({ scope: "app", key: "k" });
      expect(made).toBe(true);
      expect(desk.sql("SELECT id FROM sandbox")).toEqual([{ id: sandbox.id }]);
      desk.now += 600_000;
      while (await desk.ring());
      expect(desk.asked).toEqual([`make ${sandbox.id}`]);
    },
  );

  it.each(["INTO meta", "INTO event", "DELETE FROM scope"])(
    "[D32] leaves no half of a report: told again, all of it is taken (%s)",
    async (statement) => {
      const { sandbox } = await desk.find({ scope: "app" });
      const box = desk.box(sandbox.id);
      box.metadata = { color: "red" };
      box.events = [
        { seq: 1, at: "2026-01-01T00:00:00Z", event: { type: "state", state: "paused" } },
      ];
      box.become("destroying");
      full = statement;
      expect(() => box.tell()).toThrow("SQLITE_FULL");
      full = undefined;
      box.tell();
      expect(desk.row(sandbox.id)).toMatchObject({ state: "destroying", event_seq: 1 });
      expect(desk.sql("SELECT k, v FROM meta")).toEqual([{ k: "color", v: "red" }]);
      expect(desk.sql("SELECT sandbox FROM event")).toEqual([{ sandbox: sandbox.id }]);
      expect(desk.current("app")).toBeUndefined();
    },
  );

  it("[D32] leaves no half of its tables: with room again they are made", async () => {
    const rows = new DatabaseSync(":memory:");
    const place = new FullDesk();
    Object.assign(place, { rows });
    full = "CREATE TABLE event";
    expect(() => place.restart()).toThrow("SQLITE_FULL");
    full = undefined;
    place.restart();
    expect((await place.find({ scope: "app" })).made).toBe(true);
  });
});
