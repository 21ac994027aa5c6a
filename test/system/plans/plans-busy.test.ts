/** What a plan of real sandboxes refuses and lets in while it runs, its largest size, and members of every kind. */
import { afterAll, describe, expect, it } from "vitest";
import { connectCalls } from "../../berth-calls.ts";
import { rejection } from "../../unit/client/scripted-server.ts";
import { until } from "../../until.ts";
import { startFileServer } from "../file-server.ts";
import { engineEntries, pauseCopy, post, runPython } from "../files/workspace.ts";
import { alive } from "../processes.ts";
import { Fleet, inParallel } from "./plan-fleet.ts";

/** Long enough in being copied to be stopped in the middle. */
const large = `
import os
os.makedirs("/workspace/large")
for n in range(6000): open(f"/workspace/large/{n}", "w").write(str(n))
`;

const server = await startFileServer();

afterAll(async () => {
  await until("every tree is gone", () => engineEntries(server, "snapshots").length === 0);
  expect(engineEntries(server, "trees")).toEqual([]);
});

async function write(id: string, text: string): Promise<void> {
  expect((await server.exec(id, `echo ${text} > file`)).body.exitCode).toBe(0);
}

async function file(id: string): Promise<string> {
  const { body } = await server.exec(id, "cat file");
  return typeof body.stdout === "string" ? body.stdout.trim() : JSON.stringify(body);
}

async function destroy(id: string): Promise<void> {
  expect((await server.call("DELETE", `/v1/sandboxes/${id}?force=true`)).status).toBe(200);
}

describe("while a commit of real sandboxes runs", () => {
  it("[PL102] joins, removals, replacements, other commits and rollbacks are refused; the same commit joins the run; another plan is not affected", async () => {
    const fleet = await Fleet.of(server, "busy", 4);
    const other = await Fleet.of(server, "free", 2);
    const spare = await server.create();
    await runPython(server, fleet.id(1), large);
    for (const id of [...fleet.ids, ...other.ids]) await write(id, "one");
    const first = fleet.plan.commit();
    const copy = await pauseCopy(server, fleet.id(1));
    expect((await fleet.plan.get()).running).toMatchObject({ commit: 1, outcome: "pending" });

    const key = fleet.members[0]?.key ?? "";
    const attempts = {
      add: () => fleet.plan.putMember("new", { create: {} }),
      adopt: () => fleet.plan.putMember("new", { sandboxId: spare }),
      replace: () => fleet.plan.putMember(key, { sandboxId: spare }),
      remove: () => fleet.plan.removeMember(key),
      "remove and destroy": () => fleet.plan.removeMember(key, { sandbox: "destroy" }),
      "commit otherwise": () => fleet.plan.commit({ mode: "best_effort" }),
      rollback: () => fleet.plan.rollback(),
      end: () => fleet.plan.remove(),
    };
    for (const [what, attempt] of Object.entries(attempts)) {
      const { code, facts } = await rejection(attempt());
      expect([what, code, facts.commit]).toEqual([what, "plan_busy", 1]);
    }
    // A member that is stopped for the commit is held; reads are free.
    const lease = await server.call("GET", `/v1/sandboxes/${fleet.id(1)}/lease`);
    expect(lease.body).toMatchObject({ state: "held", holder: "plan:busy" });
    expect((await server.call("GET", `/v1/sandboxes/${fleet.id(1)}`)).status).toBe(200);
    const joined = [fleet.plan.commit(), fleet.plan.commit({ waitMs: 1 })];
    await other.committed();
    const { running, members } = await fleet.plan.get();
    expect(running).toMatchObject({ commit: 1 });
    expect(members.map(({ sandbox }) => sandbox).sort()).toEqual(fleet.ids);

    copy.resume();
    const done = await first;
    expect(done).toMatchObject({ commit: 1, outcome: "committed" });
    expect(await Promise.all(joined)).toEqual([done, done]);
    expect((await fleet.plan.commits()).commits).toHaveLength(1);
    // What was refused can be done now.
    expect(await fleet.plan.putMember("new", { sandboxId: spare })).toMatchObject({
      sandbox: spare,
    });
    await other.plan.remove({ sandboxes: "destroy" });
    fleet.members.push({ key: "new", id: spare });
    await fleet.end();
  });
});

describe("a plan of fifty real sandboxes", () => {
  it("[PL103] commits, rolls back, and ends with all its members: nothing is left", {
    timeout: 240_000,
  }, async () => {
    const fleet = await Fleet.of(server, "fifty", 50);
    await inParallel(fleet.ids, 8, (id) => write(id, `old-${id}`));
    const commit = await fleet.committed();
    expect(commit.members.map(({ outcome }) => outcome)).toEqual(Array(50).fill("committed"));
    await inParallel(fleet.ids, 8, (id) => write(id, "new"));
    expect(await fleet.plan.rollback({ waitMs: 20_000 })).toMatchObject({ commit: 2 });
    expect(await fleet.plan.commitOf(2, { waitMs: 25_000 })).toMatchObject({
      outcome: "rolled_back",
    });
    const files = await inParallel(fleet.ids, 8, file);
    expect(files).toEqual(fleet.ids.map((id) => `old-${id}`));
    await fleet.expectAtRest();
    const jails = () =>
      server.processes().filter(({ command }) => command.includes("berth-agent jail")).length;
    expect(jails()).toBeGreaterThanOrEqual(50);
    await fleet.end();
    await until("every jail is gone", () => jails() === 0);
    for (const id of fleet.ids) {
      const { body } = await server.call("GET", `/v1/sandboxes/${id}`);
      expect(body.state).toBe("destroyed");
    }
    expect((await rejection(fleet.plan.get())).code).toBe("not_found");
  });
});

describe("members of every kind", () => {
  it("[PL104] a sandbox is in one plan; an empty commit is made on request; a fork of a commit has its files", async () => {
    const fleet = await Fleet.of(server, "kinds", 3);
    const second = connectCalls(server).plan("second");
    await second.put();
    const refused = await rejection(second.putMember("mine", { sandboxId: fleet.id(0) }));
    expect(refused).toMatchObject({ code: "in_other_plan", facts: { plan: "kinds" } });
    expect((await second.get()).members).toEqual([]);
    await second.remove();

    expect((await rejection(fleet.plan.commit())).code).toBe("nothing_to_commit");
    const empty = await fleet.committed({ allowEmpty: true });
    await write(fleet.id(0), "committed");
    const full = await fleet.committed();
    expect(full.commit).toBeGreaterThan(empty.commit);
    await write(fleet.id(0), "later");
    const from = full.members.find(({ sandbox }) => sandbox === fleet.id(0))?.checkpoint;
    const fork = await server.create({ from });
    expect([await file(fork), await file(fleet.id(0))]).toEqual(["committed", "later"]);
    const view = await server.call("GET", `/v1/sandboxes/${fork}`);
    expect(view.body.plan, "a fork is nobody's member").toBeUndefined();
    await destroy(fork);
    await fleet.end();
  });

  it("[PL105] with best effort a held member is reported as aborted and keeps its work, and the others are committed", async () => {
    const fleet = await Fleet.of(server, "effort", 4);
    for (const id of fleet.ids) await write(id, "one");
    await fleet.committed();
    for (const id of fleet.ids) await write(id, "two");
    const path = `/v1/sandboxes/${fleet.id(2)}/lease`;
    const lease = await server.call("POST", path, { holder: "deploy", ttlMs: 300_000 });
    const done = await fleet.committed({ mode: "best_effort", waitMs: 200 });
    for (const { sandbox, outcome, error } of done.members) {
      const isHeld = sandbox === fleet.id(2);
      expect(outcome).toBe(isHeld ? "aborted" : "committed");
      expect(error?.holder).toBe(isHeld ? "deploy" : undefined);
    }
    const { body } = await server.call("GET", path);
    expect(body).toMatchObject({ state: "held", holder: "deploy", fence: lease.body.fence });
    await server.call("DELETE", `${path}?break=true&reason=the+test+is+over`);
    await until("it is free", async () => (await server.call("GET", path)).body.state === "free");
    expect(await fleet.plan.rollback()).toMatchObject({ outcome: "rolled_back" });
    const files = await inParallel(fleet.ids, 4, file);
    expect(files).toEqual(["two", "two", "one", "two"]);
    await fleet.expectAtRest();
    await fleet.end();
  });

  it("[PL106] paused members are committed and rolled back like running ones", async () => {
    const fleet = await Fleet.of(server, "paused", 3);
    for (const id of fleet.ids) await write(id, "one");
    for (const id of fleet.ids.slice(1)) {
      expect((await post(server, id, "pause")).body.state).toBe("paused");
    }
    await fleet.committed();
    const states = async () => {
      const all = await inParallel(fleet.ids, 4, (id) => server.call("GET", `/v1/sandboxes/${id}`));
      return all.map(({ body }) => body.state);
    };
    expect(await states(), "a commit wakes nobody").toEqual(["running", "paused", "paused"]);
    for (const id of fleet.ids) await write(id, "two");
    await post(server, fleet.id(2), "pause");
    expect(await fleet.plan.rollback()).toMatchObject({ outcome: "rolled_back" });
    expect(await inParallel(fleet.ids, 4, file)).toEqual(["one", "one", "one"]);
    await fleet.end();
  });

  it("[PL107] if a member's agent is killed during its snapshot, all members are committed or none, and no file is lost", async () => {
    const fleet = await Fleet.of(server, "struck", 4);
    for (const id of fleet.ids) await write(id, "one");
    const first = await fleet.committed();
    await runPython(server, fleet.id(1), large);
    for (const id of fleet.ids) await write(id, "two");
    const running = fleet.plan.commit();
    const copy = await pauseCopy(server, fleet.id(1));
    const agent = server.agentOf(fleet.id(1));
    process.kill(agent.pid, "SIGKILL");
    await until("the agent is gone", () => alive([agent]).length === 0);
    copy.resume();
    const { outcome, commit, members } = await running;
    expect(["committed", "aborted"]).toContain(outcome);
    for (const member of members) expect(member.outcome).toBe(outcome);
    const last = outcome === "committed" ? commit : first.commit;
    for (const member of (await fleet.plan.get()).members) expect(member.committed).toBe(last);
    await until("the struck one runs again", async () => {
      // A look into it tells the object that its container is gone.
      await server.call("GET", `/v1/sandboxes/${fleet.id(1)}/processes`);
      return (await post(server, fleet.id(1), "start")).body.state === "running";
    });
    await until("its agent is another one", () => server.agentOf(fleet.id(1)).pid !== agent.pid);
    expect(await inParallel(fleet.ids, 4, file)).toEqual(Array(4).fill("two"));
    await fleet.expectAtRest();
    expect(await fleet.plan.rollback()).toMatchObject({ outcome: "rolled_back" });
    const expected = outcome === "committed" ? "two" : "one";
    expect(await inParallel(fleet.ids, 4, file)).toEqual(Array(4).fill(expected));
    await fleet.end();
  });
});
