/**
 * Owns how much must have happened in a run at least: a server that refuses, or clients that stop, break no promise.
 * Does not own the promises (checks/). The numbers are a third of what a machine gave that a load of 34 on two cores
 * made ten times slower: who falls below them does nothing.
 */

/** What a run counted; `asked` and `verbs` by verb, the second those that were acknowledged. */
export type Happened = {
  calls: number;
  acks: number;
  asked: Record<string, number>;
  verbs: Record<string, number>;
  faults: Record<string, number>;
  disk: boolean;
  reads: number;
  streams: number;
  wholeStreams: number;
};

/** In a minute. What is less than one in the time of a run is not asked for. */
export const acksOfAMinute: Record<string, number> = {
  ...{ exec: 5, "exec with key": 6, "exec in session": 1.5, "leased exec": 6, session: 1.5 },
  ...{ process: 1.5, logs: 1, terminal: 1.5, attach: 0.5, "file up": 1, "file down": 0.5 },
  ...{ patch: 20, metadata: 8, acquire: 4, release: 3, hold: 1, break: 1 },
  ...{ create: 6, destroy: 3, list: 3, start: 2, pause: 0.5, checkpoint: 1 },
  ...{ look: 1, write: 0.5, restore: 0.5, plan: 0.5, commit: 0.5, rollback: 0.3 },
  ...{ "exec in a burst": 10 },
};

export const faultsOfAMinute: Record<string, number> = {
  ...{ "kill agent": 1, "kill room": 0.5, "kill engine": 0.5, "kill workerd": 0.5 },
  ...{ "kill launcher": 0.5, "kill all": 0.5 },
  ...{ "stop agent": 0.5, "stop agent long": 0.5, "stop engine": 0.5, "stop workerd": 0.5 },
  ...{ cut: 1, "cut silently": 1, refuse: 0.5, "fill disk": 0.5 },
};

/** What each run has that goes on until it has; a disk is not everywhere, and the long stop lasts for 35 s. */
export const eachRun = {
  faults: Object.keys(faultsOfAMinute).filter(
    (kind) => kind !== "fill disk" && kind !== "stop agent long",
  ),
  verbs: [
    ...["exec", "exec in a burst", "exec with key", "exec in session", "leased exec", "process"],
    ...["logs", "terminal"],
    ...["attach", "file up", "patch", "create", "destroy", "acquire", "hold", "list"],
    ...["checkpoint", "restore", "commit"],
  ],
};

const readsOfAMinute = 10;
const wholeStreamsOfAMinute = 1;
/** However fast a machine is. */
const acksShareMin = 0.2;
const acksOfVerbShareMin = 0.02;
const wholeShareMin = 0.2;

/** In words; nothing where enough has happened. */
export function missing(happened: Happened, minutes: number): string[] {
  const problems: string[] = [];
  const least = (what: string, count: number, min: number) => {
    const whole = Math.floor(min);
    if (count < whole) problems.push(`${what}: ${count}, and ${whole} are the least`);
  };
  const { calls, acks, asked, verbs, faults, streams, wholeStreams } = happened;
  least(`acknowledged of ${calls} calls`, acks, acksShareMin * calls);
  for (const [verb, ofAMinute] of Object.entries(acksOfAMinute)) {
    const askedFor = asked[verb] ?? 0;
    const min = Math.max(ofAMinute * minutes, acksOfVerbShareMin * askedFor);
    least(`acknowledged of ${askedFor} of ${verb}`, verbs[verb] ?? 0, min);
  }
  for (const [name, ofAMinute] of Object.entries(faultsOfAMinute)) {
    if (name === "fill disk" && !happened.disk) continue;
    least(`faults of ${name}`, faults[name] ?? 0, ofAMinute * minutes);
  }
  least("reads that were compared", happened.reads, readsOfAMinute * minutes);
  const whole = Math.max(wholeStreamsOfAMinute * minutes, wholeShareMin * streams);
  least(`streams read whole, of ${streams}`, wholeStreams, whole);
  return problems;
}
