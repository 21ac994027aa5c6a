/**
 * What happens in a run, generated from its seed in advance: what each client does, and which fault comes when. A
 * plan is a list, so that a failure can be repeated with fewer steps (shrink.ts).
 */
import type { SandboxSpec } from "../../../src/core/sandbox/record.ts";
import { Random } from "../random.ts";
import type { Step } from "../steps.ts";

export type Exec = {
  type: "exec";
  runMs: number;
  /** It waits for a lease of its own. */
  waitMs?: number;
  mayWake: boolean;
  /** It changes the files. */
  writes?: true;
  /** The caller disconnects. */
  leaveAfterMs?: number;
  /** It has a key: it is repeated if its response was lost, and `repeats` times more, each time by `atOnce` callers. */
  key?: { repeats: number; atOnce: number };
};

export type LeaseStep = Exec | { type: "renew" } | { type: "rest"; ms: number };

export type Action =
  | Exec
  | {
      type: "lease";
      ttlMs: number;
      waitMs: number;
      queueMs: number;
      hasTicket: boolean;
      inner: LeaseStep[];
      /** `overlap`: released while its last command runs. */
      end: "release" | "force" | "forget" | "overlap";
      /** Stops polling once it is queued. */
      leavesQueue: boolean;
    }
  | { type: "pause"; force: boolean; waitMs?: number }
  | { type: "start" | "touch" | "look" | "break" }
  | { type: "destroy"; force: boolean }
  | { type: "patch"; key: string; value: string | null; isMatched: boolean }
  | { type: "put"; value: string };

export type FaultName = (typeof faultNames)[number];

export type Plan = {
  seed: number;
  spec: SandboxSpec;
  clients: number;
  steps: Step<Action, FaultName>[];
};

/** Names that appear twice are picked more often. */
const faultNames = [
  "crash",
  "crash",
  "forgotten instance",
  "forgotten instance",
  "crash after a commit",
  "crash after a commit",
  "crash with the container",
  "container dies",
  "agent restarts",
  "agent is silent",
  "agent is silent",
  "engine is away",
  "engine is away",
  "engine restarts",
  "engine refuses",
  "messages are lost",
  "messages are slow",
  "bodies are late",
  "alarms are late",
  "clock steps",
  "clock steps back",
] as const;

export function planOf(seed: number): Plan {
  const random = new Random(seed * 7919 + 1);
  const clients = random.between(3, 8);
  const steps: Plan["steps"] = [];
  for (let client = 0; client < clients; client++) {
    for (let left = random.between(2, 7); left > 0; left--) {
      const restMs = random.chance(0.8) ? random.between(0, 400) : random.between(0, 40_000);
      steps.push({ kind: "action", client, restMs, action: actionOf(random) });
    }
  }
  // Some runs have no faults: nothing may fail there either.
  const faults = random.chance(0.15) ? 0 : random.between(1, 9);
  // Some runs repeat one fault.
  const theme = random.chance(0.25) ? random.pick(faultNames) : undefined;
  for (let left = faults; left > 0; left--) {
    steps.push({
      kind: "fault",
      atMs: random.chance(0.7) ? random.between(0, 8_000) : random.between(0, 90_000),
      fault: theme ?? random.pick(faultNames),
      ms: random.chance(0.5) ? random.between(100, 8_000) : random.between(8_000, 200_000),
      size: random.next(),
    });
  }
  const plan = { seed, spec: specOf(random), clients, steps };
  return seed % 7 < 3 ? withKeys(plan) : plan;
}

/** In three of seven seeds. With its own random numbers, so that the other seeds keep their histories. */
function withKeys(plan: Plan): Plan {
  const random = new Random(plan.seed * 104_729 + 7);
  const withKey = <Any extends Action | LeaseStep>(action: Any): Any =>
    action.type === "exec" && random.chance(0.7)
      ? { ...action, key: { repeats: random.between(0, 3), atOnce: random.pick([1, 1, 2, 4]) } }
      : action;
  const steps = plan.steps.map((step): Plan["steps"][number] => {
    if (step.kind !== "action") return step;
    const { action } = step;
    if (action.type !== "lease") return { ...step, action: withKey(action) };
    return { ...step, action: { ...action, inner: action.inner.map(withKey) } };
  });
  return { ...plan, steps };
}

function specOf(random: Random): SandboxSpec {
  return {
    id: "sim".padEnd(24, "0"),
    tenant: "sim",
    createdAt: Date.UTC(2030, 0, 1),
    env: {},
    network: { internet: false },
    idleTimeoutMs: random.pick([5_000, 60_000, 600_000]),
    onIdle: random.pick(["pause", "pause", "none", "destroy"]),
    wake: random.chance(0.9) ? "auto" : "never",
    ...(random.chance(0.1) ? { maxLifetimeMs: random.between(10_000, 200_000) } : {}),
  };
}

function actionOf(random: Random): Action {
  const roll = random.next();
  if (roll < 0.34) return leaseOf(random);
  if (roll < 0.7) return execOf(random, random.chance(0.3));
  if (roll < 0.82) return metadataOf(random);
  if (roll < 0.88) {
    return random.chance(0.3)
      ? { type: "pause", force: false, waitMs: random.between(100, 25_000) }
      : { type: "pause", force: random.chance(0.5) };
  }
  if (roll < 0.91) return { type: "start" };
  if (roll < 0.96) return { type: "break" };
  if (roll < 0.985) return { type: random.chance(0.5) ? "touch" : "look" };
  return { type: "destroy", force: random.chance(0.7) };
}

function leaseOf(random: Random): Action {
  const waitMs = random.chance(0.7) ? random.between(0, 25_000) : 0;
  const queueMs = random.chance(0.5) ? random.between(waitMs, 300_000) : waitMs;
  const inner: LeaseStep[] = [];
  for (let left = random.between(0, 3); left > 0; left--) {
    const roll = random.next();
    if (roll < 0.6) inner.push(execOf(random, false));
    else if (roll < 0.8) inner.push({ type: "renew" });
    else inner.push({ type: "rest", ms: random.between(0, 15_000) });
  }
  return {
    type: "lease",
    ttlMs: random.pick([1_000, 5_000, 30_000]),
    waitMs,
    queueMs,
    hasTicket: random.chance(0.7),
    inner,
    end: random.pick(["release", "release", "release", "force", "forget", "overlap"]),
    leavesQueue: random.chance(0.1),
  };
}

function execOf(random: Random, waits: boolean): Exec {
  return {
    type: "exec",
    runMs: random.chance(0.6) ? random.between(0, 1_500) : random.between(0, 20_000),
    mayWake: random.chance(0.9),
    ...(waits ? { waitMs: random.between(0, 25_000) } : {}),
    ...(random.chance(0.15) ? { leaveAfterMs: random.between(0, 5_000) } : {}),
  };
}

function metadataOf(random: Random): Action {
  const value = random.name(4);
  if (random.chance(0.3)) return { type: "put", value };
  return {
    type: "patch",
    key: random.pick(["one", "two", "three"]),
    value: random.chance(0.3) ? null : value,
    isMatched: random.chance(0.3),
  };
}
