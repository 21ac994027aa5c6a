/** kill -9 of the engine, of workerd and of the whole server in the middle of commits and rollbacks of plans. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import type { Commit } from "../../../src/protocol/plan.ts";
import { randomOf } from "../../linearizability/history.ts";
import { until } from "../../until.ts";
import { engineEntries, listed, post, runPython } from "../files/workspace.ts";
import { alive, processesNaming } from "../processes.ts";
import { killRounds } from "../runs/rounds.ts";
import { type Server, startServer } from "../server.ts";
import { Fleet, inSteps } from "./plan-fleet.ts";

const members = 6;
const files = 60;
const killWithinMs = 300;
const victims = ["server", "workerd", "engine"] as const;

/** Every file says which version of the tree it belongs to, and a folder has its name. */
const write = (version: number) => `
import os, shutil
for name in os.listdir("/workspace"): shutil.rmtree("/workspace/" + name)
os.mkdir("/workspace/only-${version}")
for n in range(${files}): open(f"/workspace/only-${version}/{n}", "w").write("${version}")
`;
const read = `
import os
found = []
for folder, _, names in os.walk("/workspace"): found += [open(f"{folder}/{name}").read() for name in names]
print(len(found), sorted(set(found)), sorted(os.listdir("/workspace")))
`;
const contentOf = (version: number) => `${files} ['${version}'] ['only-${version}']`;

const data = mkdtempSync(join(tmpdir(), "berth-plan-cut-"));

/** The one that runs now: a test that fails in the middle leaves it to the end. */
let running: Server | undefined;

afterAll(async () => {
  await running?.[Symbol.asyncDispose]();
  rmSync(data, { recursive: true, force: true });
});

async function started(): Promise<Server> {
  running = await startServer({ data });
  return running;
}

describe("kill -9 in the middle of a plan's run", () => {
  it("[PL108] leaves every plan all old or all new, each member's own work unchanged, no lease of a run, and no tree without a row", {
    timeout: 60_000 + killRounds * 30_000,
  }, async () => {
    const fleet = await Fleet.of(await started(), "cut", members);
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
      await struck(fleet, victim);
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
    const tree = fleet.server.processes();
    await fleet.server.stop();
    running = undefined;
    await until("every process is gone", () => alive(tree).length === 0);
    expect(processesNaming(data)).toEqual([]);
  });
});

async function written(fleet: Fleet, version: number): Promise<void> {
  await inSteps(fleet.ids, 3, (id) => runPython(fleet.server, id, write(version)));
}

async function trees(fleet: Fleet): Promise<string[]> {
  const all = await inSteps(fleet.ids, 3, (id) => runPython(fleet.server, id, read));
  return all.map((text) => text.trim());
}

async function struck(fleet: Fleet, victim: (typeof victims)[number]): Promise<void> {
  const { server } = fleet;
  const engine = server.processOf("container/engine/main.ts");
  const workerd = server.processOf("workerd serve");
  const tree = server.processes();
  const all = { engine: [engine], workerd: [workerd], server: [server.launcher, workerd, engine] };
  for (const { pid } of all[victim]) process.kill(pid, "SIGKILL");
  if (victim === "engine") {
    await until("the engine is back", () =>
      server.processes().some(({ command }) => command.includes("container/engine/main.ts")),
    );
  } else {
    await server.ended();
    fleet.server = await started();
    expect(alive(tree)).toEqual([]);
  }
}

/** The run has ended, without anybody who asks for it again; each member stands and starts. */
async function settled(fleet: Fleet, what: string): Promise<void> {
  await until(
    `${what}: its run ends`,
    async () => (await fleet.plan.get()).running === undefined,
    60_000,
  );
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
    const rows = await inSteps(fleet.ids, 3, (id) => listed(fleet.server, id));
    expect(rows.every((ids) => ids.length === 1)).toBe(true);
    return rows.flat().length === engineEntries(fleet.server, "snapshots").length;
  });
  await until(`${what}: no trash`, () => engineEntries(fleet.server, "trash").length === 0, 60_000);
}
