/**
 * The minimum that must happen in a run, because a server that refuses everything or clients that stop break no
 * promise. The numbers are a third of what a two-core machine under a load of 34 achieved, which made it ten times
 * slower.
 */

/** The counts of a run; `requested` and `verbs` are by verb, `verbs` counts the acknowledged calls. */
export type RunCounts = {
  calls: number;
  acks: number;
  requested: Record<string, number>;
  verbs: Record<string, number>;
  faults: Record<string, number>;
  disk: boolean;
  reads: number;
  streams: number;
  completeStreams: number;
};

/** Per minute. A minimum below one for the whole run is not required. */
export const acksPerMinute: Record<string, number> = {
  ...{ exec: 5, "exec with key": 6, "exec in session": 1.5, "leased exec": 6, session: 1.5 },
  ...{ process: 1.5, logs: 1, terminal: 1.5, attach: 0.5, "file up": 1, "file down": 0.5 },
  ...{ patch: 20, metadata: 8, acquire: 4, release: 3, hold: 1, break: 1 },
  ...{ create: 6, destroy: 3, list: 3, start: 2, pause: 0.5, checkpoint: 1 },
  ...{ read: 1, write: 0.5, restore: 0.5, plan: 0.5, commit: 0.5, rollback: 0.3 },
  ...{ "exec in a burst": 10 },
};

export const faultsPerMinute: Record<string, number> = {
  ...{ "kill agent": 1, "kill jail": 0.5, "kill engine": 0.5, "kill workerd": 0.5 },
  ...{ "kill launcher": 0.5, "kill all": 0.5 },
  ...{ "stop agent": 0.5, "stop agent long": 0.5, "stop engine": 0.5, "stop workerd": 0.5 },
  ...{ cut: 1, "cut silently": 1, refuse: 0.5, "fill disk": 0.5 },
};

/** What each run with `--each` waits for. Not every machine can mount a disk, and the long stop takes 35 s. */
export const requiredInEachRun = {
  faults: Object.keys(faultsPerMinute).filter(
    (kind) => kind !== "fill disk" && kind !== "stop agent long",
  ),
  verbs: [
    ...["exec", "exec in a burst", "exec with key", "exec in session", "leased exec", "process"],
    ...["logs", "terminal"],
    ...["attach", "file up", "patch", "create", "destroy", "acquire", "hold", "list"],
    ...["checkpoint", "restore", "commit"],
  ],
};

const readsPerMinute = 10;
const completeStreamsPerMinute = 1;
/** Minimum shares, on a machine of any speed. */
const acksShareMin = 0.2;
const acksOfVerbShareMin = 0.02;
const completeShareMin = 0.2;

/** Describes what counts too rarely; empty if enough counts. */
export function shortfalls(counts: RunCounts, minutes: number): string[] {
  const problems: string[] = [];
  const least = (what: string, count: number, min: number) => {
    const required = Math.floor(min);
    if (count < required) problems.push(`${what}: ${count}, but at least ${required} are required`);
  };
  const { calls, acks, requested, verbs, faults, streams, completeStreams } = counts;
  least(`acknowledged calls, of ${calls}`, acks, acksShareMin * calls);
  for (const [verb, perMinute] of Object.entries(acksPerMinute)) {
    const requestedOfVerb = requested[verb] ?? 0;
    const min = Math.max(perMinute * minutes, acksOfVerbShareMin * requestedOfVerb);
    least(`acknowledged calls of ${verb}, of ${requestedOfVerb}`, verbs[verb] ?? 0, min);
  }
  for (const [name, perMinute] of Object.entries(faultsPerMinute)) {
    if (name === "fill disk" && !counts.disk) continue;
    least(`faults of ${name}`, faults[name] ?? 0, perMinute * minutes);
  }
  least("compared reads", counts.reads, readsPerMinute * minutes);
  const completeMin = Math.max(completeStreamsPerMinute * minutes, completeShareMin * streams);
  least(`complete streams, of ${streams}`, completeStreams, completeMin);
  return problems;
}
