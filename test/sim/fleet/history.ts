/**
 * Plays one fleet history: a script from its beginning to rest, and what was observed.
 */
import type { Violation } from "../world.ts";
import { serve } from "./clients.ts";
import { drive } from "./drive.ts";
import { goWrong } from "./faults.ts";
import { Fleet } from "./fleet.ts";
import type { FleetBreakage } from "./fleet-breakages.ts";
import { checkRest } from "./rest.ts";
import type { Script } from "./script.ts";

export type FleetHistory = {
  violation: Violation | undefined;
  steps: number;
  counts: Map<string, number>;
  trace: string[];
};

/** All calls have limits of their own; a call that waits longer than all of them together waits forever. */
const waitMaxMs = 3 * 60 * 60_000;

export async function playFleet(script: Script, breakage?: FleetBreakage): Promise<FleetHistory> {
  const fleet = new Fleet(script.seed, breakage);
  let isDone = false;
  void Promise.all([serve(fleet, script), goWrong(fleet, script)]).then(
    () => {
      isDone = true;
    },
    (error: unknown) =>
      fleet.fail(
        "nothing throws",
        error instanceof Error ? (error.stack ?? error.message) : String(error),
      ),
  );
  await drive(fleet, () => isDone, waitMaxMs);
  if (fleet.violation === undefined && !isDone) {
    const beings = [
      fleet.directory,
      ...fleet.plans,
      ...[...fleet.sandboxes.values()].map(({ object }) => object),
    ];
    const waiting = beings.flatMap(({ open }) => [...open].map(({ what }) => what));
    fleet.fail("nothing waits for ever", `no response yet: ${waiting.join(", ")}`);
  }
  if (fleet.violation === undefined) await checkRest(fleet);
  const { violation, counts, schedule } = fleet;
  fleet.close();
  return { violation, counts, steps: schedule.steps, trace: schedule.trace };
}
