/** The catalogue of bad calls, each sent to a real Berth: refused with its field, and nothing has changed. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callOf, catalogue, refusalOf } from "./catalogue.ts";
import { Scene } from "./scene.ts";

const rowsMin = 300;

describe("a bad call", () => {
  const rows = catalogue();
  let scene: Scene;
  let before: Record<string, unknown>;
  let rowsBefore: Record<string, unknown>;

  beforeAll(async () => {
    scene = await Scene.set();
    before = await scene.seen();
    rowsBefore = scene.rows();
  });

  afterAll(async () => {
    expect(await scene.berth.end()).toEqual([]);
  });

  it("[SC1] is one of a long catalogue in which none stands twice", () => {
    expect(rows.length).toBeGreaterThanOrEqual(rowsMin);
    expect(
      rows.map(({ title }) => title).filter((title, index, all) => all.indexOf(title) < index),
    ).toEqual([]);
    expect(JSON.parse(String(before[`/v1/sandboxes/${scene.names.held}/lease`]))).toMatchObject({
      state: "held",
      holder: "the holder",
    });
    expect(scene.berth.containers()).toHaveLength(1);
  });

  it.each(rows)(
    "[SC1] is refused by its field, and changes nothing: $file: $title",
    async (row) => {
      const { status, code, field } = refusalOf(row, scene.names);
      const answer = await scene.berth.send(callOf(row, scene.names));
      expect({ status: answer.status, text: answer.text, ...answer.body.error }).toMatchObject({
        status,
        code,
        message: expect.stringContaining(field ?? ""),
        retryable: expect.any(Boolean),
        ...(field === undefined ? {} : { field }),
      });
      expect(answer.body.requestId).toBe(answer.headers["berth-request-id"]);
      const after = await scene.seen();
      expect(after).toEqual(before);
    },
  );

  it("[SC2] leaves no row in any object, all of them together", async () => {
    expect(Object.keys(rowsBefore).length).toBeGreaterThan(10);
    expect(scene.rows()).toEqual(rowsBefore);
  });

  it("[SC2] wakes no container of a sandbox that has none, whatever is wrong with it", async () => {
    const { asleep = "" } = scene.names;
    const ofForm = rows.filter(
      ({ refused, call }) => /^(400|413|415|426)/.test(refused) && !/ (\/v1|\^)/.test(call),
    );
    expect(ofForm.length).toBeGreaterThan(150);
    for (const row of ofForm) {
      const answer = await scene.berth.send(callOf(row, scene.names, asleep));
      expect(answer.status, row.title).toBeGreaterThanOrEqual(400);
      expect(answer.status, row.title).toBeLessThan(500);
    }
    expect(await scene.seen()).toEqual(before);
    expect(scene.rows()).toEqual(rowsBefore);
    // It can be woken: by a call that is right.
    const { berth } = scene;
    expect(await berth.exec(asleep, { command: "echo awake" })).toMatchObject({
      stdout: "awake\n",
    });
    expect(berth.containers()).toHaveLength(2);
  });
});
