/**
 * Invariants at the end of a fleet history, when no fault is active any more and time has passed: no run is open or partly
 * committed, members and plans agree, lists are correct, and everything can be used again.
 */
import type { PlanRecord, Run } from "../../../src/core/plan/record.ts";
import { isEnding } from "../../../src/core/sandbox/step.ts";
import * as names from "../../../src/objects/directory/plans.ts";
import { listRows } from "../../../src/objects/sandbox/lifecycle/checkpoint-rows.ts";
import { SandboxHost } from "../sandbox/sandbox.ts";
import type { World } from "../sandbox/world.ts";
import { BaseHost } from "../simulated-object.ts";
import { FleetClient } from "./clients.ts";
import { listAll } from "./directory-instance.ts";
import type { Fleet } from "./fleet.ts";
import type { SimulatedPlan } from "./plan.ts";

const minute = 60_000;

export async function checkRest(fleet: Fleet): Promise<void> {
  await fleet.settle(40 * minute);
  if (fleet.violation !== undefined) return;
  checkPlans(fleet);
  checkParticipants(fleet);
  await checkLists(fleet);
  for (const plan of fleet.plans) if (fleet.violation === undefined) await checkUse(fleet, plan);
}

function checkPlans(fleet: Fleet): void {
  for (const plan of fleet.plans) {
    const { record } = plan;
    if (record === undefined) continue;
    checkName(fleet, record);
    if (record.run !== null) fleet.fail("a run ends", `${plan.name}: run ${record.run.n} is open`);
    if (record.joining.length + record.leaving.length > 0) {
      fleet.fail(
        "no membership change lasts forever",
        `${plan.name}: ${JSON.stringify([record.joining, record.leaving])}`,
      );
    }
    for (const run of ended(plan)) checkAtomicity(fleet, plan.name, run);
    fleet.checkIdle(plan.name, plan.host);
    for (const member of record.members) checkMember(fleet, record, member);
  }
}

/** A plan has its name exactly while it exists. */
function checkName(fleet: Fleet, { name, status, createdAt }: PlanRecord): void {
  const given = names.planCreatedAt(
    fleet.directory.host ?? new BaseHost(fleet, fleet.directory.database),
    name,
  );
  if (status === "removing" || (status === "here" && given !== createdAt)) {
    fleet.fail("plans are known by their names", `${name} is ${status}, named ${given}`);
  }
  // A later time means that the name was given again.
  if (status === "gone" && given !== undefined && given <= createdAt) {
    fleet.fail("plans are known by their names", `${name} is gone and has its name`);
  }
}

/** Members that were destroyed meanwhile do not count. */
function checkAtomicity(fleet: Fleet, plan: string, run: Run): void {
  if (run.mode !== "atomic") return;
  const outcomes = new Set(
    run.parts
      .map(({ ended }) => ended)
      .filter((result) => result?.error?.code !== "sandbox_destroyed")
      .map((result) => result?.outcome),
  );
  const isPartly =
    outcomes.has("aborted") && (outcomes.has("committed") || outcomes.has("rolled_back"));
  const isUnkept = run.decision?.go === true && run.kind === "commit" && outcomes.has("failed");
  if (!isPartly && !isUnkept) return;
  const ends = JSON.stringify(run.parts.map(({ ended }) => ended));
  fleet.fail("all or nothing", `${plan}, run ${run.n}: ${ends}`);
}

function checkMember(fleet: Fleet, plan: PlanRecord, member: PlanRecord["members"][number]): void {
  const facts = fleet.sandboxes.get(member.sandbox)?.observer.facts;
  if (facts === undefined || isEnding(facts.sandbox.state)) return;
  const { participant } = facts;
  if (participant?.plan !== plan.name) {
    fleet.fail(
      "plans and members agree",
      `${member.sandbox} says it is in ${participant?.plan ?? "no plan"}`,
    );
  } else if ((participant.committed?.run ?? null) !== member.committed) {
    const message = `${member.sandbox}: ${participant.committed?.run ?? "nothing"} is committed, not ${member.committed}`;
    fleet.fail("plans and members agree", message);
  }
}

function checkParticipants(fleet: Fleet): void {
  for (const [id, world] of fleet.sandboxes) {
    const facts = world.observer.facts;
    if (facts === undefined || isEnding(facts.sandbox.state)) continue;
    const { participant, lease } = facts;
    if (lease.state.name === "held" && lease.state.pinned === true) {
      fleet.fail("no lease is held forever", `${id} is held by ${lease.state.grant.holder}`);
    }
    if (participant !== null && participant.phase.name !== "over") {
      fleet.fail("no lease is held forever", `${id} is still ${participant.phase.name}`);
    }
    const plan = fleet.plans.find(({ name }) => name === participant?.plan);
    if (
      participant !== null &&
      plan?.record?.members.every(({ sandbox }) => sandbox !== id) !== false
    ) {
      fleet.fail("plans and members agree", `${id} thinks it is in ${participant.plan}`);
    }
    checkMadeForPlan(fleet, id, world);
    checkCheckpoints(fleet, id, world);
  }
}

/** A sandbox that a plan created is or was its member, or has ended; and sandboxes to end have ended. */
function checkMadeForPlan(fleet: Fleet, id: string, { observer, database }: World): void {
  if (fleet.watch.ended.has(id)) fleet.fail("what is to end ends", `${id} was not ended`);
  if (!fleet.watch.madeForPlans.has(id) || observer.facts?.participant != null) return;
  const [joined] = database.sql<{ n: number }>(
    `SELECT count(*) AS n FROM event WHERE data LIKE '%"joined"%'`,
  );
  if (joined?.n === 0) fleet.fail("nothing is made for nobody", `${id} was never a member`);
}

/** Only the committed checkpoint of the plan is usable, and its files exist. */
function checkCheckpoints(fleet: Fleet, id: string, world: World): void {
  const committed = world.observer.facts?.participant?.committed?.checkpoint;
  const usable = listRows(new SandboxHost(world)).filter(
    ({ used_by, state }) => used_by === "plan" && state !== "leaving",
  );
  const ids = usable.map((row) => row.id);
  if (ids.join() !== (committed ?? "")) {
    fleet.fail(
      "what is committed is kept, and nothing else",
      `${id}: ${ids}, committed ${committed}`,
    );
  }
  for (const { handle } of usable) {
    if (!world.engine.snapshots.has(handle))
      fleet.fail("what is committed is kept", `${id}: no tree`);
  }
}

async function checkLists(fleet: Fleet): Promise<void> {
  const list = async () => {
    const outcome = await fleet.directory.call("the last list", (_actor, host) => listAll(host));
    if (!("ok" in outcome)) return fleet.fail("lists can be had", JSON.stringify(outcome));
    const listed = new Map(outcome.ok.map(({ id, state }) => [id, state]));
    for (const [id, { observer }] of fleet.sandboxes) {
      const state = observer.facts?.sandbox.state.name;
      const shown = state === "destroyed" ? undefined : state;
      if (listed.get(id) !== shown) {
        fleet.fail("lists say what is", `${id} is ${state}, listed as ${listed.get(id)}`);
      }
    }
    checkScopes(fleet);
  };
  if (!(await fleet.finishes(list(), minute))) fleet.fail("lists can be had", "no answer");
}

function checkScopes(fleet: Fleet): void {
  const alive = new Map<string, string>();
  for (const [id, { observer }] of fleet.sandboxes) {
    const facts = observer.facts;
    const scope = facts?.sandbox.spec.scope?.repo;
    if (facts === undefined || scope === undefined || isEnding(facts.sandbox.state)) continue;
    const other = alive.get(scope);
    if (other !== undefined) fleet.fail("one sandbox for a scope", `${other} and ${id} live`);
    alive.set(scope, id);
  }
}

/** What is left of the plan can be committed, worked on, and brought back, to the byte. */
async function checkUse(fleet: Fleet, plan: SimulatedPlan): Promise<void> {
  const auditor = new FleetClient(fleet, "auditor");
  const use = async () => {
    const record = plan.record;
    for (const { sandbox, key } of record?.members ?? []) {
      const state = fleet.sandboxes.get(sandbox)?.observer.facts?.sandbox.state;
      if (state === undefined || isEnding(state)) {
        const member = { plan: numberOf(plan), key: Number(key.slice(1)) };
        await auditor.perform({ type: "remove", ...member, destroy: false });
      }
    }
    const members = plan.record?.members ?? [];
    const worlds = members.map(({ sandbox }) => fleet.sandbox(sandbox));
    const isUsable = worlds.every(({ observer }) => {
      const state = observer.facts?.sandbox.state;
      return state?.name === "running" || state?.name === "paused";
    });
    if (members.length === 0 || !isUsable) return;
    const about = { plan: numberOf(plan), waitMs: 20_000 };
    const terms = { mode: "atomic", allowEmpty: true } as const;
    const commit = await auditor.run({ type: "commit", ...terms, ...about });
    if (commit?.outcome !== "committed") {
      return fleet.fail("a plan can be used again", JSON.stringify(commit ?? "refused"));
    }
    const trees = worlds.map(({ engine }) => new Map(engine.tree));
    for (const { engine } of worlds) engine.tree.set("later", fleet.random.name(6));
    const back = await auditor.run({ type: "rollback", ...about });
    if (back?.outcome !== "rolled_back") {
      return fleet.fail("a plan can be rolled back", JSON.stringify(back ?? "refused"));
    }
    for (const [index, { engine }] of worlds.entries()) {
      if (JSON.stringify([...engine.tree]) !== JSON.stringify([...(trees[index] ?? [])])) {
        fleet.fail(
          "a rollback brings files back",
          `${members[index]?.sandbox}: ${[...engine.tree]}`,
        );
      }
    }
    fleet.count("outcome", "a plan was used again");
  };
  const isDone = await fleet.finishes(use(), 30 * minute);
  if (!isDone) fleet.fail("a plan can be used again", "nobody answered");
}

function ended(plan: SimulatedPlan): Run[] {
  return plan.database
    .sql<{ n: number }>("SELECT n FROM run ORDER BY n")
    .flatMap(({ n }) => plan.runOf(n) ?? []);
}

function numberOf({ name }: SimulatedPlan): number {
  return Number(name.slice(1));
}
