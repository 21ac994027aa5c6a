/**
 * What must hold at the end, after faults have stopped and time has passed: no call waits, the copy of the metadata
 * is true, the lease is available, commands run, and a destroyed sandbox leaves nothing.
 */
import { isEnding } from "../../../src/core/sandbox/step.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { Client } from "./clients.ts";
import type { World } from "./world.ts";

const minute = 60_000;
const settleMs = 30 * minute;

export async function checkQuiet(world: World): Promise<void> {
  await world.settle(settleMs);
  // A save by the clock may just have begun.
  await world.drive(() => isIdle(world), minute);
  if (world.violation !== undefined) return;
  checkRest(world);
  checkCopy(world);
  checkList(world);
  checkEvents(world);
  const facts = world.observer.facts;
  if (facts === undefined || world.violation !== undefined) return;
  if (isEnding(facts.sandbox.state)) await checkForgotten(world);
  else await checkUse(world);
}

function isIdle({ object: { host } }: World): boolean {
  return host === undefined || host.timers + host.backgrounds === 0;
}

function checkRest(world: World): void {
  const { actor } = world.object;
  const lease = world.observer.facts?.lease;
  if (lease !== undefined && lease.waiters.length > 0) {
    world.fail("nothing waits for ever", `${lease.waiters.length} still wait for the lease`);
  }
  if (lease?.state.name === "draining" || lease?.state.name === "offered") {
    world.fail("nothing waits for ever", `the lease is still ${lease.state.name}`);
  }
  const state = world.observer.facts?.sandbox.state.name;
  if (state === "starting" || state === "pausing" || state === "destroying") {
    world.fail("nothing waits for ever", `it is still ${state}`);
  }
  if (actor?.existing !== undefined && actor.inFlight.size > 0) {
    world.fail("nothing waits for ever", `${actor.inFlight.size} calls still count as in flight`);
  }
  if (actor !== undefined && actor.keysInFlight.size > 0) {
    world.fail("nothing is left", `${actor.keysInFlight.size} keys are still under way`);
  }
  world.checkIdle("the sandbox", world.object.host);
}

function checkList(world: World): void {
  const facts = world.observer.facts;
  if (facts === undefined) return;
  const newestReport = world.observer.reports.newest;
  const actual = `${facts.sandbox.state.name} with metadata ${facts.metadata.version}`;
  if (newestReport === actual) return;
  world.fail("lists follow", `they show ${newestReport ?? "nothing"}, true is ${actual}`);
}

function checkCopy(world: World): void {
  const facts = world.observer.facts;
  const { agent } = world.engine;
  if (facts?.sandbox.state.name !== "running" || agent === undefined) return;
  if (agent.incarnation !== facts.sandbox.state.life.incarnation) return;
  const { version } = facts.metadata;
  if (agent.metadata.version === version) return;
  world.fail("the copy follows", `it has version ${agent.metadata.version}, not ${version}`);
}

function checkEvents(world: World): void {
  if (world.observer.facts === undefined) return;
  const rows = world.database.sql<{ seq: number; at: number }>(
    "SELECT seq, at FROM event ORDER BY seq",
  );
  for (const [index, row] of rows.entries()) {
    const before = rows[index - 1];
    if (before === undefined) continue;
    const { seq } = row;
    if (seq !== before.seq + 1) world.fail("events have no holes", `${before.seq}, then ${seq}`);
    if (row.at < before.at)
      world.fail("time never runs backwards", `event ${seq} is before ${seq - 1}`);
  }
}

/** A tombstone ends after its time and leaves nothing. */
async function checkForgotten(world: World): Promise<void> {
  if (world.engine.hasContainer) world.fail("destroyed is final", "it has a container");
  if (world.engine.hasFiles) world.fail("destroyed is final", "it has files");
  await world.drive(() => world.observer.facts === undefined, limits.tombstoneMs + 60 * minute);
  if (world.violation !== undefined) return;
  await world.settle(minute);
  if (world.observer.facts !== undefined || world.database.alarm !== undefined) {
    world.fail("nothing is left", "the tombstone stays");
  } else world.count("outcome", "a tombstone ended");
}

async function checkUse(world: World): Promise<void> {
  const client = new Client(world, "auditor");
  const terms = { type: "lease", ttlMs: 30_000, waitMs: 25_000, queueMs: 25_000 } as const;
  const use = async () => {
    const rest = { hasTicket: true, end: "release", leavesQueue: false } as const;
    const granted = await client.acquire("auditor", { ...terms, ...rest, inner: [] });
    if (granted === undefined) return world.fail("a lease can be had again", "it was refused");
    const command = { type: "exec", runMs: 10, mayWake: true } as const;
    let outcome = await client.exec("auditor", command, granted.token);
    let refused = "refused" in outcome ? outcome.refused.code : undefined;
    if (refused === "operation_interrupted") {
      // The first call notices a container that exited unnoticed; the next one starts it.
      outcome = await client.exec("auditor", command, granted.token);
      refused = "refused" in outcome ? outcome.refused.code : undefined;
    }
    // A sandbox that failed for good, or must not wake by itself, says so.
    if (!("ok" in outcome) && refused !== "start_failed" && refused !== "not_running") {
      world.fail("work runs again", refused ?? "the answer was lost");
    }
    await client.release("auditor", granted.token, false);
  };
  const isDone = await world.finishes(use(), 10 * minute);
  if (!isDone) world.fail("a lease can be had again", "nobody answered");
}
