/**
 * The faults, how often each comes, and when: a few at a time, one after the other of each kind. See
 * faults/schedule.ts for the order within a kind.
 */
import { setTimeout as pause } from "node:timers/promises";
import { Random } from "../sim/random.ts";
import { cut, cutSilently, refuse } from "./faults/cuts.ts";
import { fillDisk } from "./faults/disk.ts";
import type { Fault } from "./faults/fault.ts";
import {
  killAgent,
  killAll,
  killEngine,
  killJail,
  killLauncher,
  killWorkerd,
  stopAgent,
  stopAgentLong,
  stopEngine,
  stopWorkerd,
} from "./faults/processes.ts";
import { Schedule } from "./faults/schedule.ts";
import type { History } from "./history.ts";
import type { ServerUnderTest } from "./server-under-test.ts";

/** How often each fault comes in one round of its kind. */
type FaultCounts = [count: number, fault: Fault][];
type FaultKind = { chosen: FaultCounts; restMinMs: number; restMaxMs: number };

/** The kinds run independently, so that faults overlap. */
const kinds: FaultKind[] = [
  {
    chosen: [
      [10, killAgent],
      [3, killJail],
      [2, killEngine],
      [2, killWorkerd],
      [1, killLauncher],
      [1, killAll],
    ],
    restMinMs: 300,
    restMaxMs: 3_500,
  },
  {
    chosen: [
      [10, stopAgent],
      [1, stopAgentLong],
      [3, stopEngine],
      [3, stopWorkerd],
    ],
    restMinMs: 500,
    restMaxMs: 4_000,
  },
  {
    chosen: [
      [5, cut],
      [3, cutSilently],
      [1, refuse],
    ],
    restMinMs: 500,
    restMaxMs: 4_000,
  },
  { chosen: [[1, fillDisk]], restMinMs: 6_000, restMaxMs: 20_000 },
];

/** Injects faults until the run is over and resolves when all of them are reverted. */
export async function injectFaults(
  target: ServerUnderTest,
  history: History,
  seed: number,
  over: AbortSignal,
): Promise<void> {
  const running = kinds.map(async ({ chosen, restMinMs, restMaxMs }, n) => {
    // The random numbers inside a fault depend on what it finds, so they have a generator of their own: order and
    // times of the faults stay reproducible.
    const random = new Random(seed * 7919 + n);
    const faultRandom = new Random(seed * 7919 + kinds.length + n);
    const schedule = new Schedule(chosen, random);
    const rest = () => pause(random.between(restMinMs, restMaxMs), undefined, { signal: over });
    while (!over.aborted) {
      await rest().catch(() => {});
      if (over.aborted) return;
      const name = await schedule.current({ target, random: faultRandom, over });
      if (name === undefined) continue;
      history.fault(name);
      schedule.next();
    }
  });
  await Promise.all(running);
}
