/** Steps of the wall clock while a lease, a wait or an idle sandbox runs to its end. */
import { afterEach, describe, expect, it } from "vitest";
import type { SandboxSpec } from "../../src/core/sandbox/record.ts";
import { acquire, get } from "../../src/objects/sandbox/lease/leases.ts";
import * as lifecycle from "../../src/objects/sandbox/lifecycle/lifecycle.ts";
import { planOf } from "./sandbox/script.ts";
import { World } from "./sandbox/world.ts";
import type { Outcome } from "./simulated-object.ts";

const hour = 60 * 60_000;
/** By how much, and after which time the clock is right again. */
const steps: readonly [name: string, byMs: number, forMs?: number][] = [
  ["an hour back", -hour],
  ["an hour ahead", hour],
  ["ten minutes ahead for 30 ms", 10 * 60_000, 30],
];
/** A call, an alarm or a beat later than due. */
const lateMs = 3_000;

let world: World;
afterEach(() => {
  expect(world.violation).toBeUndefined();
  world.database.close();
});

async function finish<T>(call: Promise<Outcome<T>>): Promise<Outcome<T>> {
  const [isDone, outcome] = await Promise.all([world.finishes(call, 10 * hour), call]);
  expect(isDone).toBe(true);
  return outcome;
}

async function create(more: Partial<SandboxSpec> = {}): Promise<void> {
  world = new World(1);
  world.weather.isOneMachine = true;
  const spec: SandboxSpec = { ...planOf(1).spec, onIdle: "none", wake: "auto", ...more };
  const call = { spec, metadata: {}, start: true };
  await finish(world.object.call("create", (actor) => lifecycle.make(actor, call)));
  await world.drive(() => world.observer.facts?.sandbox.state.name === "running", hour);
}

function stepIn(ms: number, byMs: number, forMs?: number): void {
  world.schedule.after(ms, "the clock steps", () => world.setClock(byMs));
  if (forMs === undefined) return;
  world.schedule.after(ms + forMs, "the clock is right again", () => world.setClock(-byMs));
}

const acquires = (holder: string, ttlMs: number, waitMs: number) =>
  world.object.call(`${holder} acquires`, (actor) =>
    acquire(actor, { holder, ttlMs, waitMs, queueMs: waitMs }),
  );

describe.each(steps)("a wall clock that steps %s", (_name, byMs, forMs) => {
  it("[Q27] neither prolongs nor shortens the lease of a dead holder", async () => {
    await create();
    stepIn(900, byMs, forMs);
    // It is touched while the clock is ahead.
    world.schedule.after(910, "somebody looks", () => void world.object.call("look", get));
    const granted = await finish(acquires("dead", 2_000, 0));
    expect(granted).toMatchObject({ ok: { holder: "dead" } });
    const began = world.schedule.now;
    const next = await finish(acquires("next", 2_000, 20_000));
    expect(next).toMatchObject({ ok: { holder: "next" } });
    const tookMs = world.schedule.now - began;
    expect(tookMs).toBeGreaterThan(1_500);
    expect(tookMs).toBeLessThan(2_000 + lateMs);
  });

  it("[Q27] neither prolongs nor shortens a wait with `waitMs`", async () => {
    await create();
    await finish(acquires("holder", 60_000, 0));
    const began = world.schedule.now;
    stepIn(900, byMs, forMs);
    const refused = await finish(acquires("waiter", 1_000, 8_000));
    expect(refused).toMatchObject({ refused: { code: "lease_wait_timeout" } });
    const tookMs = world.schedule.now - began;
    expect(tookMs).toBeGreaterThanOrEqual(8_000);
    expect(tookMs).toBeLessThan(8_000 + lateMs);
  });

  it("[Q27] neither prolongs nor shortens the idleness of a sandbox that somebody still sees", async () => {
    await create({ onIdle: "pause", idleTimeoutMs: 60_000 });
    const began = world.schedule.now;
    stepIn(5_000, byMs, forMs);
    const readLease = () => void world.object.call("look", get);
    world.schedule.after(5_010, "somebody looks", readLease);
    // An object that nobody uses leaves memory.
    world.schedule.after(15_000, "it leaves memory", () => world.object.crash("dead"));
    world.schedule.after(70_000, "somebody looks", readLease);
    await world.drive(() => world.observer.facts?.sandbox.state.name !== "running", 10 * hour);
    const tookMs = world.schedule.now - began;
    expect(tookMs).toBeGreaterThan(55_000);
    // The platform holds the alarm back after a step back; the next call sets it again, for the whole time.
    expect(tookMs).toBeLessThan((byMs < 0 ? 70_000 : 0) + 60_000 + lateMs);
  });

  it("[Q27] keeps no lease by the sleep between calls, each of which waits a while", async () => {
    await create();
    stepIn(0, byMs, forMs);
    await world.settle(10);
    await finish(acquires("dead", 60_000, 0));
    const began = world.schedule.now;
    let next: Outcome<unknown> = { lost: true };
    while (!("ok" in next) && world.schedule.now - began < hour) {
      await world.settle(20_000);
      world.object.crash("dead");
      next = await finish(acquires("next", 2_000, 20_000));
    }
    expect(next).toMatchObject({ ok: { holder: "next" } });
    expect(world.schedule.now - began).toBeLessThan(3 * 60_000);
  });
});
