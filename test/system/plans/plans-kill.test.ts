/** kill -9 of the engine, of workerd and of the whole server in the middle of commits and rollbacks of plans. */
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { Commit } from "../../../src/protocol/plan.ts";
import { randomOf } from "../../linearizability/history.ts";
import { until } from "../../until.ts";
import { killRounds, Restarts, type Victim } from "../file-server.ts";
import {
  engineEntries,
  listed,
  post,
  readVersion,
  trashIsEmpty,
  versionContent,
  writeVersion,
} from "../files/workspace.ts";
import { Fleet, inParallel } from "./plan-fleet.ts";

const members = 6;
const files = 60;
const killWithinMs = 300;
const victims: Victim[] = ["server", "workerd", "engine"];

const contentOf = (version: number) => versionContent(version, files);

const servers = new Restarts();

describe("kill -9 in the middle of a plan's run", () => {
  it("[PL108] leaves every plan all old or all new, each member's own work unchanged, no lease of a run, and no tree without a row", {
    timeout: 60_000 + killRounds * 30_000,
  }, async () => {
    const fleet = await Fleet.of(await servers.start(), "cut", members);
    /** What the last commit has. */
    let committed = 1;
    await written(fleet, committed);
    /** And its number. */
    let newest: number | null = (await fleet.committed()).commit;
    const seen = { old: 0, new: 0, unanswered: 0 };
    for (let round = 1; round <= killRounds; round += 1) {
      const random = randomOf(round);
      const version = round + 1;
      const kind = round % 2 === 0 ? "rollback" : "commit";
      const victim = victims[random(victims.length)] ?? "server";
      const what = `round ${round}: ${kind}, ${victim}`;
      await written(fleet, version);
      let answered: Commit | undefined;
      const over = (kind === "commit" ? fleet.plan.commit() : fleet.plan.rollback()).then(
        (done) => {
          answered = done;
        },
        () => undefined,
      );
      await pause(random(killWithinMs));
      if (answered === undefined) seen.unanswered += 1;
      fleet.server = await servers.kill(fleet.server, victim);
      await over;
      await settled(fleet, what);

      const now = await trees(fleet);
      expect(new Set(now).size, `${what}: ${now}`).toBe(1);
      const back = [contentOf(version), contentOf(committed)];
      if (kind === "rollback") {
        expect(back, what).toContain(now[0]);
        if (answered?.outcome === "rolled_back") expect(now[0], what).toBe(contentOf(committed));
        seen[now[0] === contentOf(version) ? "old" : "new"] += 1;
      } else {
        expect(now[0], `${what}: their own work`).toBe(contentOf(version));
        const numbers = (await fleet.plan.get()).members.map((member) => member.committed);
        expect(new Set(numbers).size, `${what}: ${numbers}`).toBe(1);
        expect(await fleet.plan.rollback(), what).toMatchObject({ outcome: "rolled_back" });
        const saved = await trees(fleet);
        const isNew = saved[0] === contentOf(version);
        expect(saved, what).toEqual(Array(members).fill(contentOf(isNew ? version : committed)));
        expect(isNew, `${what}: what the plan says`).toBe(numbers[0] !== newest);
        if (answered?.outcome === "committed") expect(isNew, what).toBe(true);
        seen[isNew ? "new" : "old"] += 1;
        if (isNew) committed = version;
        newest = numbers[0] ?? 0;
      }
      await agree(fleet, what);
    }
    console.log(JSON.stringify({ rounds: killRounds, ...seen }));
    expect(seen.unanswered).toBeGreaterThan(0);
    expect(seen.old).toBeGreaterThan(0);

    await fleet.end();
    expect([
      engineEntries(fleet.server, "trees"),
      engineEntries(fleet.server, "snapshots"),
    ]).toEqual([[], []]);
    await servers.stop(fleet.server);
  });
});

async function written(fleet: Fleet, version: number): Promise<void> {
  await inParallel(fleet.ids, 3, (id) => writeVersion(fleet.server, id, version, files));
}

async function trees(fleet: Fleet): Promise<string[]> {
  return inParallel(fleet.ids, 3, (id) => readVersion(fleet.server, id));
}

/** The run has ended, without anybody who asks for it again; each member stands and starts. */
async function settled(fleet: Fleet, what: string): Promise<void> {
  const hasEnded = async () => (await fleet.plan.get()).running === undefined;
  await until(`${what}: its run ends`, hasEnded);
  const { server } = fleet;
  for (const id of fleet.ids) {
    await until(`${what}: ${id} starts`, async () => {
      // A look into it tells the object that its container is gone.
      await server.call("GET", `/v1/sandboxes/${id}/processes`).catch(() => undefined);
      return (await post(server, id, "start")).body.state === "running";
    });
  }
}

/** Rows and trees, of sandboxes and of commits; nobody is held, and nothing half made is left. */
async function agree(fleet: Fleet, what: string): Promise<void> {
  await fleet.expectAtRest();
  expect(engineEntries(fleet.server, "trees"), what).toEqual(fleet.ids);
  await until(`${what}: rows and trees agree`, async () => {
    const rows = await inParallel(fleet.ids, 3, (id) => listed(fleet.server, id));
    expect(rows.every((ids) => ids.length === 1)).toBe(true);
    return rows.flat().length === engineEntries(fleet.server, "snapshots").length;
  });
  await trashIsEmpty(fleet.server);
}
