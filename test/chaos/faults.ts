/**
 * Owns which faults there are, how often each comes, and when: a few at a time, one after another of each kind.
 * In which order those of one kind come is the deck's (faults/deck.ts).
 */
import { setTimeout as pause } from "node:timers/promises";
import { Random } from "../sim/random.ts";
import { cut, cutSilently, refuse } from "./faults/cuts.ts";
import { Deck } from "./faults/deck.ts";
import { fillDisk } from "./faults/disk.ts";
import type { Fault } from "./faults/fault.ts";
import {
  killAgent,
  killAll,
  killEngine,
  killLauncher,
  killRoom,
  killWorkerd,
} from "./faults/kills.ts";
import { stopAgent, stopAgentLong, stopEngine, stopWorkerd } from "./faults/stops.ts";
import type { History } from "./history.ts";
import type { Stage } from "./stage.ts";

/** Of each fault: how often it comes before all of them begin again. */
type Chosen = [count: number, fault: Fault][];
type Line = { chosen: Chosen; restMinMs: number; restMaxMs: number };

/** Each line goes on by itself, so that faults meet. */
const lines: Line[] = [
  {
    chosen: [
      [10, killAgent],
      [3, killRoom],
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

/** Until it is over; then everything that was done to the server has been undone. */
export async function disturb(
  stage: Stage,
  history: History,
  seed: number,
  over: AbortSignal,
): Promise<void> {
  const running = lines.map(async ({ chosen, restMinMs, restMaxMs }, n) => {
    // What is drawn within a fault depends on what it finds: which one is next, and when, does not.
    const random = new Random(seed * 7919 + n);
    const within = new Random(seed * 7919 + lines.length + n);
    const deck = new Deck(chosen, random);
    const rest = () => pause(random.between(restMinMs, restMaxMs), undefined, { signal: over });
    while (!over.aborted) {
      await rest().catch(() => {});
      if (over.aborted) return;
      const name = await deck.top({ stage, random: within, over });
      if (name === undefined) continue;
      history.fault(name);
      deck.next();
    }
  });
  await Promise.all(running);
}
