/**
 * One simulated history and what its objects share: virtual time, randomness, delays, current faults, counts and the
 * verdict. See sandbox/world.ts for a history of one sandbox and fleet/fleet.ts for one of many.
 */
import type { FleetBreakage } from "./fleet/fleet-breakages.ts";
import { Random } from "./random.ts";
import type { Breakage } from "./sandbox/breakages.ts";
import { Schedule } from "./schedule.ts";
import type { BaseHost, Outcome, SimulatedObject } from "./simulated-object.ts";

type Violation = { rule: string; message: string };

export type AnyBreakage = Breakage | FleetBreakage;

export type History = {
  violation: Violation | undefined;
  steps: number;
  counts: Map<string, number>;
  /** What happened, in order. */
  trace: string[];
};

/** The instance was replaced, and has just noticed. */
export class InstanceReplaced extends Error {
  override readonly name = "Gone";
}

/** The current faults; the script switches them. */
export class Weather {
  lossShare = 0;
  isSlow = false;
  hasLateBodies = false;
  hasLateAlarms = false;
  /** Requests between objects arrive twice, the second time late. */
  repeats = false;
  /** Alarms wait as long as they were set for, and then for the wall clock; beats ring those that are late. */
  isOneMachine = false;
  skewMs = 0;
  /** By how much clocks were set back in total. */
  setBackMs = 0;
}

const startAt = Date.UTC(2030, 0, 1);

/** All calls have limits; a call that takes longer than all of them together never ends. */
const playLimitMs = 3 * 60 * 60_000;

export abstract class Simulation {
  readonly random: Random;
  readonly schedule: Schedule;
  readonly weather: Weather;
  readonly counts: Map<string, number>;
  readonly breakage: AnyBreakage | undefined;
  violation: Violation | undefined;
  protected readonly slowDelayMaxMs: number = 20_000;
  protected readonly rareDelayMaxMs: number = 3_000;
  /** A run with more steps does not make progress. */
  protected readonly stepsMax: number = 60_000;

  /** `parent`: the history of which this one is a part. */
  constructor(seed: number, breakage: AnyBreakage | undefined, parent?: Simulation) {
    this.random = parent?.random ?? new Random(seed);
    this.schedule = parent?.schedule ?? new Schedule(this.random, startAt);
    this.weather = parent?.weather ?? new Weather();
    this.counts = parent?.counts ?? new Map();
    this.breakage = breakage;
  }

  /** Checks the invariants after each step. */
  protected abstract onStep(): void;

  /** The clock of all objects, which may be set forward and back. */
  clock(): number {
    return this.schedule.now + this.weather.skewMs;
  }

  sleep(ms: number, what: string): Promise<void> {
    return new Promise((resolve) => this.schedule.after(ms, what, resolve));
  }

  delay(): number {
    const { random } = this;
    if (this.weather.isSlow && random.chance(0.3)) return random.between(100, this.slowDelayMaxMs);
    return random.chance(0.02) ? random.between(10, this.rareDelayMaxMs) : random.between(0, 4);
  }

  alarmDelay(): number {
    return this.weather.hasLateAlarms && this.random.chance(0.5)
      ? this.random.between(1, 60_000)
      : this.random.between(0, 5);
  }

  loses(what: string): boolean {
    if (this.weather.lossShare === 0 || !this.random.chance(this.weather.lossShare)) return false;
    this.count("fault", `lost: ${what}`);
    this.schedule.say(`lost: ${what}`);
    return true;
  }

  count(kind: "state" | "lease" | "fault" | "answer" | "outcome", name: string): void {
    const key = `${kind}: ${name}`;
    this.counts.set(key, (this.counts.get(key) ?? 0) + 1);
  }

  /** Counts what a client got. */
  countOutcome(client: string, verb: string, outcome: Outcome<unknown>): void {
    const result = "ok" in outcome ? "ok" : "lost" in outcome ? "lost" : outcome.refused.code;
    this.count("answer", `${verb}: ${result}`);
    this.schedule.say(`${client} got: ${verb}: ${result}`);
  }

  fail(rule: string, message: string): void {
    this.violation ??= { rule, message };
    this.schedule.say(`BROKEN: ${rule}: ${message}`);
  }

  /** Reports a thrown error, unless the instance has been replaced. */
  onThrown(what: string, host: BaseHost, error: unknown): void {
    if (error instanceof InstanceReplaced || host.state !== "live") return;
    this.fail("nothing throws", `${what} threw ${textOf(error)}`);
  }

  /** No timer and no background work may be left. */
  checkIdle(name: string, host: BaseHost | undefined): void {
    if (host === undefined || host.timers + host.backgrounds === 0) return;
    const { timers, backgrounds } = host;
    this.fail("nothing is left", `${name}: ${timers} timers, ${backgrounds} pieces of work`);
  }

  /** Runs step by step until `isDone`, the time is over, or an invariant is broken; true when `isDone`. */
  async drive(isDone: () => boolean, limitMs: number): Promise<boolean> {
    const { schedule } = this;
    const end = schedule.now + limitMs;
    while (this.violation === undefined) {
      if (isDone()) return true;
      const next = schedule.nextAt;
      if (next === undefined || next > end) return false;
      await schedule.step();
      this.onStep();
      if (schedule.steps > this.stepsMax) this.fail("work ends", `${this.stepsMax} steps, no end`);
    }
    return false;
  }

  /** Lets this time pass. */
  async settle(ms: number): Promise<void> {
    await this.drive(() => false, ms);
  }

  /** Drives the work to its end; false if it takes longer. */
  async finishes(work: Promise<unknown>, limitMs: number): Promise<boolean> {
    let isDone = false;
    work.then(
      () => {
        isDone = true;
      },
      (error: unknown) => this.fail("nothing throws", textOf(error)),
    );
    await this.drive(() => isDone, limitMs);
    return isDone;
  }

  /** Plays a whole history, whose calls to these objects must all end, and then checks what must hold at rest. */
  async play(
    work: Promise<unknown>,
    objects: () => Pick<SimulatedObject<never>, "open">[],
    checkRest: () => Promise<void>,
  ): Promise<History> {
    const isDone = await this.finishes(work, playLimitMs);
    if (!isDone && this.violation === undefined) {
      const waiting = objects().flatMap(({ open }) => [...open].map(({ what }) => what));
      this.fail("nothing waits for ever", `no answer yet: ${waiting.join(", ")}`);
    }
    if (this.violation === undefined) await checkRest();
    const { violation, counts, schedule } = this;
    return { violation, counts, steps: schedule.steps, trace: schedule.trace };
  }
}

/** Values that never change: a second value of a key breaks the rule. */
export class FixedValues {
  readonly #simulation: Simulation;
  readonly #rule: string;
  readonly #values = new Map<number, string>();

  constructor(simulation: Simulation, rule: string) {
    this.#simulation = simulation;
    this.#rule = rule;
  }

  set(key: number, value: string): void {
    this.check(key, value);
    this.#values.set(key, value);
  }

  check(key: number, value: string): void {
    const known = this.#values.get(key);
    if (known === undefined || known === value) return;
    this.#simulation.fail(this.#rule, `${key} was ${known} and is ${value}`);
  }

  /** The value of the highest key. */
  get newest(): string | undefined {
    return this.#values.get(Math.max(...this.#values.keys()));
  }
}

/** Throws if an invariant was broken, with the command that repeats the history. */
export function requireSound(history: History, seed: number, flags = ""): History {
  const { violation, trace } = history;
  if (violation === undefined) return history;
  const { rule, message } = violation;
  const command = `npm run sim -- ${flags}--from ${seed} --seeds 1`;
  throw new Error(`seed ${seed}: ${rule}: ${message}\n${command}\n${trace.slice(-40).join("\n")}`);
}

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
