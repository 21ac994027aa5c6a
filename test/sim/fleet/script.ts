/**
 * Generates the script of a fleet history from its seed: the calls of each client, and when which fault happens. It is a
 * list, so that a failing history can be shrunk.
 */
import { Random } from "../random.ts";
import type { Step as AnyStep } from "../steps.ts";

export type Action =
  | { type: "find"; scope: number; onExisting: "reuse" | "replace"; force?: boolean }
  | { type: "list" }
  /** `with`: a sandbox that was found so far, or a new one. */
  | { type: "put"; plan: number; key: number; with: number | "new" }
  | { type: "remove"; plan: number; key: number; destroy: boolean }
  | {
      type: "commit";
      plan: number;
      mode: "atomic" | "best_effort";
      allowEmpty: boolean;
      waitMs: number;
    }
  | { type: "rollback"; plan: number; waitMs: number }
  /** The plan itself: its name is given back, and may be given again. */
  | { type: "end"; plan: number; destroy: boolean }
  /** A command that changes the files. */
  | { type: "write"; which: number; runMs: number; waits: boolean }
  | { type: "hold"; which: number; ms: number }
  | { type: "break" | "pause"; which: number }
  | { type: "destroy"; which: number; force: boolean };

type Step = AnyStep<Action, FaultName>;

export type Script = {
  seed: number;
  clients: number;
  plans: number;
  scopes: number;
  steps: Step[];
};

export const faultNames = [
  "plan crashes",
  "plan is forgotten",
  "directory crashes",
  "sandbox crashes",
  "sandbox is forgotten",
  "container dies",
  "engine is away",
  "engine refuses",
  "messages are lost",
  "messages are slow",
  "questions come twice",
  "alarms are late",
] as const;

export type FaultName = (typeof faultNames)[number];

/** Crashes of who decides are what two phases are for. */
const drawn: readonly [FaultName, ...FaultName[]] = [
  ...faultNames,
  "plan crashes",
  "plan crashes",
  "plan crashes",
  "plan is forgotten",
  "sandbox crashes",
  "sandbox crashes",
  "messages are lost",
  "questions come twice",
  "questions come twice",
];

export function scriptOf(seed: number): Script {
  const random = new Random(seed * 6_311 + 5);
  const clients = random.between(2, 5);
  const plans = random.between(1, 2);
  const scopes = random.between(1, 3);
  // All at once about who is in which plan, and which plans there are.
  const isStorm = random.chance(0.3);
  const steps: Step[] = [];
  for (let client = 0; client < clients; client++) {
    // Each begins with something to work on.
    steps.push(
      acting(client, 0, {
        type: "find",
        scope: random.between(0, scopes - 1),
        onExisting: "reuse",
      }),
    );
    steps.push(acting(client, random.between(0, 200), putOf(random, plans)));
    for (let left = random.between(4, 10); left > 0; left--) {
      const restMs = random.chance(0.8) ? random.between(0, 300) : random.between(0, 20_000);
      const isTight = isStorm && random.chance(0.7);
      const action = isTight ? changeOf(random, plans) : actionOf(random, plans, scopes);
      steps.push(acting(client, isTight ? random.between(0, 40) : restMs, action));
    }
  }
  if (random.chance(0.4)) steps.push(...replacing(random, clients, scopes));
  const faults = random.chance(0.15) ? 0 : random.between(1, 8);
  const theme = random.chance(0.25) ? random.pick(drawn) : undefined;
  for (let left = faults; left > 0; left--) {
    steps.push({
      kind: "fault",
      atMs: random.chance(0.7) ? random.between(0, 6_000) : random.between(0, 60_000),
      fault: theme ?? random.pick(drawn),
      ms: random.chance(0.6) ? random.between(50, 5_000) : random.between(5_000, 90_000),
      size: random.next(),
    });
  }
  return { seed, clients, plans, scopes, steps };
}

function acting(client: number, restMs: number, action: Action): Step {
  return { kind: "action", client, restMs, action };
}

function actionOf(random: Random, plans: number, scopes: number): Action {
  const plan = random.between(0, plans - 1);
  const which = random.between(0, 9);
  const roll = random.next();
  if (roll < 0.22) {
    return {
      type: "commit",
      plan,
      mode: random.chance(0.75) ? "atomic" : "best_effort",
      allowEmpty: random.chance(0.4),
      waitMs: random.pick([0, 2_000, 10_000]),
    };
  }
  if (roll < 0.28) return { type: "rollback", plan, waitMs: random.pick([1_000, 10_000]) };
  if (roll < 0.31) return { type: "end", plan, destroy: random.chance(0.4) };
  if (roll < 0.45) return putOf(random, plans);
  if (roll < 0.52) {
    return { type: "remove", plan, key: random.between(0, 3), destroy: random.chance(0.3) };
  }
  if (roll < 0.6) {
    const onExisting = random.chance(0.25) ? "replace" : "reuse";
    return { type: "find", scope: random.between(0, scopes - 1), onExisting };
  }
  if (roll < 0.64) return { type: "list" };
  if (roll < 0.84) {
    return { type: "write", which, runMs: random.between(0, 1_500), waits: random.chance(0.6) };
  }
  if (roll < 0.9) return { type: "hold", which, ms: random.between(10, 8_000) };
  if (roll < 0.93) return { type: "break", which };
  if (roll < 0.97) return { type: "pause", which };
  return { type: "destroy", which, force: random.chance(0.6) };
}

function changeOf(random: Random, plans: number): Action {
  const plan = random.between(0, plans - 1);
  const roll = random.next();
  if (roll < 0.45) return { ...putOf(random, plans), key: random.between(0, 1) };
  if (roll < 0.6) return { type: "end", plan, destroy: random.chance(0.4) };
  if (roll < 0.75) {
    return { type: "remove", plan, key: random.between(0, 1), destroy: random.chance(0.5) };
  }
  if (roll < 0.85) return { type: "destroy", which: random.between(0, 3), force: true };
  return { type: "commit", plan, mode: "atomic", allowEmpty: true, waitMs: 2_000 };
}

/** What is held is to be replaced, by several who differ in what they may do. */
function replacing(random: Random, clients: number, scopes: number): Step[] {
  const scope = random.between(0, scopes - 1);
  const hold = {
    type: "hold",
    which: random.between(0, 5),
    ms: random.between(500, 8_000),
  } as const;
  const steps = [acting(0, random.between(0, 200), hold)];
  for (let client = 1; client < clients; client++) {
    const isOther = random.chance(0.3);
    steps.push(
      acting(client, random.between(0, 1_500), {
        type: "find",
        scope,
        onExisting: isOther ? "reuse" : "replace",
        force: !isOther && random.chance(0.3),
      }),
    );
  }
  return steps;
}

function putOf(random: Random, plans: number): Extract<Action, { type: "put" }> {
  return {
    type: "put",
    plan: random.between(0, plans - 1),
    key: random.between(0, 3),
    with: random.chance(0.5) ? "new" : random.between(0, 9),
  };
}
