/**
 * Plays one plan from start to quiet, and records what happened.
 */
import type { Breakage } from "./breakages.ts";
import { serveClients } from "./clients.ts";
import { drive } from "./drive.ts";
import { injectFaults } from "./faults.ts";
import { checkQuiet } from "./quiet.ts";
import type { Plan } from "./script.ts";
import { type Violation, World } from "./world.ts";

export type History = {
  violation: Violation | undefined;
  steps: number;
  grants: number;
  counts: Map<string, number>;
  /** What happened, in order. */
  trace: string[];
};

/** All calls have limits; a call that takes longer than all of them together never ends. */
const waitLimitMs = 3 * 60 * 60_000;

export async function play(plan: Plan, breakage?: Breakage): Promise<History> {
  const world = new World(plan.seed, breakage);
  let isDone = false;
  const all = Promise.all([serveClients(world, plan), injectFaults(world, plan)]).then(
    () => {
      isDone = true;
    },
    (error: unknown) => world.fail("nothing throws", String(error)),
  );
  void all;
  await drive(world, () => isDone, waitLimitMs);
  if (world.violation === undefined && !isDone) {
    const waiting = [...world.object.open].map(({ what }) => what).join(", ");
    world.fail("nothing waits for ever", `no answer yet: ${waiting}`);
  }
  if (world.violation === undefined) await checkQuiet(world);
  const { violation, counts, schedule, observer } = world;
  world.database.close();
  return {
    violation,
    counts,
    steps: schedule.steps,
    grants: observer.grants,
    trace: schedule.trace,
  };
}
