import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { randomOf } from "../../linearizability/history.ts";
import { until } from "../../until.ts";
import type { Answer } from "../server.ts";
import { sharedServerOfFile } from "../shared-server.ts";
import { Runs } from "./runs.ts";

const many = 200;
const samplesMin = 10;

const server = await sharedServerOfFile();
const runs = await Runs.in(server);

describe("concurrent calls for the same id", () => {
  /** Samples while the work runs, and then until there are enough samples: the maximum ever seen, and the first results. */
  async function most<T>(
    work: () => Promise<T>,
    count: () => number,
  ): Promise<{ highest: number; first: T }> {
    let over = false;
    let [highest, samples] = [0, 0];
    const worked = async () => {
      const first = await work();
      while (samples <= samplesMin) await work();
      return first;
    };
    const done = worked().finally(() => {
      over = true;
    });
    for (; !over; samples += 1) {
      highest = Math.max(highest, count());
      await turn();
    }
    const first = await done;
    expect(samples).toBeGreaterThan(samplesMin);
    return { highest: Math.max(highest, count()), first };
  }

  const callByMany = (noun: string, body: Record<string, unknown>) =>
    Promise.all(Array.from({ length: many }, () => runs.call("POST", noun, body)));

  function expectOneMade(answers: Answer[]): void {
    const made = answers.filter(({ status }) => status === 201);
    const found = answers.filter(({ status }) => status === 200);
    expect([made.length, found.length]).toEqual([1, many - 1]);
    const pids = answers.map(({ body }) => body.pid);
    expect(new Set(pids).size).toBe(1);
    expect(pids[0]).toBeGreaterThan(0);
  }

  it("[M4] 200 callers of one terminal get the same one, and there is never a second PTY", async () => {
    const callAll = () => callByMany("terminals", { id: "shared", argv: ["cat"] });
    const { highest, first } = await most(callAll, () => runs.ptys());
    expect(highest).toBe(1);
    expectOneMade(first);
    const { body } = await runs.call("GET", "terminals");
    expect(body.terminals).toMatchObject([{ id: "shared" }]);
    expect((await runs.call("DELETE", "terminals/shared")).status).toBe(200);
    await until("its PTY is closed", () => runs.ptys() === 0 && runs.devices().length === 0);
  });

  it("[M4] while many callers create and end terminals there are never more PTYs than ids, and in the end as many as are listed", async () => {
    const ids = Array.from({ length: 8 }, (_, n) => `some${n}`);
    const random = randomOf(3);
    const callAll = () =>
      Promise.all(
        Array.from({ length: many }, async (_, n) => {
          const id = ids[n % ids.length] ?? "";
          const ends = random(4) === 0;
          const request = ends
            ? await runs.call("DELETE", `terminals/${id}`)
            : await runs.call("POST", "terminals", { id, argv: ["cat"] });
          expect(ends ? [200, 404] : [200, 201]).toContain(request.status);
        }),
      );
    const { highest } = await most(callAll, () => runs.ptys());
    expect(highest).toBeLessThanOrEqual(ids.length);
    const { body } = await runs.call("GET", "terminals");
    const listed = (body.terminals as { id: string }[]).map(({ id }) => id);
    expect(listed.length).toBeGreaterThan(0);
    await until("the others' are closed", () => runs.ptys() === listed.length);
    for (const id of listed) await runs.call("DELETE", `terminals/${id}`);
    await until("all are closed", () => runs.ptys() === 0 && runs.running().length === 0);
  });

  it("[M4] 200 callers of one session get the same one, and there is never a second shell", async () => {
    const shells = () => runs.running().filter((name) => name === "bash").length;
    const callAll = () => callByMany("sessions", { id: "shared" });
    const { highest, first } = await most(callAll, shells);
    expect(highest).toBe(1);
    expectOneMade(first);
    const { body } = await runs.call("GET", "sessions");
    expect(body.sessions).toMatchObject([{ id: "shared" }]);
    expect((await runs.call("DELETE", "sessions/shared")).status).toBe(200);
    await until("its shell is gone", () => runs.running().length === 0);
  });
});
