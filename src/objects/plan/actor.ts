/**
 * Owns the one commit of a plan: decide, persist, arm the alarm, and only then ask. What an earlier instance left
 * undone is gone on with at the first call or alarm.
 * Does not own decisions (core/plan), asking (asks.ts), nor what callers ask for (runs.ts, members.ts).
 */
import { type Named, open } from "../../core/plan/lifetime.ts";
import { isUnderWay, planDeadline } from "../../core/plan/pending.ts";
import type { PlanRecord } from "../../core/plan/record.ts";
import { stepRun } from "../../core/plan/run.ts";
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { NewSandbox } from "../sandbox/lifecycle/lifecycle.ts";
import { Alarm } from "../shared/alarm.ts";
import type { Place } from "../shared/host.ts";
import { Watchers } from "../shared/waiters.ts";
import type { Ports } from "./ports.ts";
import { Asks } from "./requests.ts";
import { type Look, load, save, saveLook } from "./rows.ts";

/** What is written with a change, and is no part of the record. */
type Beside = {
  /** By which the one that joins with this is made. */
  call?: NewSandbox | undefined;
  write?: (() => void) | undefined;
};

export class PlanActor {
  readonly place: Place;
  readonly watchers: Watchers;
  readonly asks: Asks;
  #plan: PlanRecord | undefined;
  #look: Look;
  #resumed = false;
  readonly #alarm: Alarm;

  constructor(place: Place, ports: Ports) {
    this.place = place;
    this.watchers = new Watchers(place);
    this.#alarm = new Alarm(place);
    this.asks = new Asks(this, ports);
    const loaded = load(place);
    this.#plan = loaded?.plan;
    this.#look = loaded?.look ?? { tries: 0, at: 0 };
  }

  /** The first call by a name makes the plan of it; one that was removed is found no more. */
  open(named: Named): PlanRecord {
    this.resume();
    const plan = open(this.#plan, named);
    if (plan === undefined) throw noSuchPlan();
    this.commit(plan);
    return plan;
  }

  /** After a wait: it may have been removed meanwhile. */
  get here(): PlanRecord {
    if (this.#plan?.life === "here") return this.#plan;
    throw noSuchPlan();
  }

  get record(): PlanRecord | undefined {
    return this.#plan;
  }

  /** A fresh instance: whoever asked for an undecided run is gone, and what was decided is gone on with. */
  resume(): void {
    if (this.#resumed) return;
    this.#resumed = true;
    if (this.#plan === undefined) return;
    this.commit(stepRun(this.#plan, { type: "instance" }, this.place.clock()));
    this.asks.pursue(this.#plan);
    this.#arm();
  }

  step(move: (plan: PlanRecord, now: number) => PlanRecord): void {
    if (this.#plan !== undefined) this.commit(move(this.#plan, this.place.clock()));
  }

  /** The one way in which anything of a plan changes: all of it, or nothing. */
  commit(after: PlanRecord, { call, write }: Beside = {}): void {
    const before = this.#plan;
    if (after === before && write === undefined) return;
    const look = isUnderWay(after) ? this.#nextLook(after, 0) : this.#look;
    this.place.together(() => {
      save(this.place, before, after, call);
      write?.();
      if (look !== this.#look) saveLook(this.place, look);
    });
    // Not before: what could not be written has not happened.
    this.#plan = after;
    this.#look = look;
    this.#arm();
    this.watchers.wakeAll();
    this.asks.pursue(after);
  }

  /** False: nothing changed by then. */
  async changed(end: number): Promise<boolean> {
    return this.watchers.change(end - this.place.clock());
  }

  async alarm(): Promise<void> {
    this.#alarm.rang();
    this.place.log({ plan: this.record?.name, why: "alarm" });
    this.resume();
    this.step((plan, now) => stepRun(plan, { type: "deadline" }, now));
    const plan = this.#plan;
    if (plan === undefined || !isUnderWay(plan)) return;
    if (this.#look.at <= this.place.clock()) {
      // Whom it asks just now it has not asked in vain.
      const tries = this.#look.tries + (this.asks.areInVain ? 1 : 0);
      const leastMs = this.asks.areInVain ? 0 : limits.planDecidingLookMs;
      const look = this.#nextLook(plan, tries, leastMs);
      // Written before anybody is asked: one that hangs or stops in the middle keeps nobody from the next try.
      saveLook(this.place, look);
      this.#look = look;
      this.asks.again(plan);
    } else this.asks.pursue(plan);
    this.#arm();
    await this.asks.settled();
  }

  /** When those are asked again who were asked in vain. */
  #nextLook({ run }: PlanRecord, tries: number, leastMs = 0): Look {
    const now = this.place.clock();
    const isDeciding = run !== null && run.decision === null;
    const waitMs = Math.min(
      Math.max(limits.planLookMs * 2 ** tries, leastMs),
      isDeciding ? limits.planDecidingLookMs : limits.tellAgainMaxMs,
    );
    const was = this.#look;
    // What goes on does not put off whoever waits to be asked again.
    const at = was.at > now ? Math.min(was.at, now + waitMs) : now + waitMs;
    return at === was.at && tries === was.tries ? was : { tries, at };
  }

  /** Somebody is to be asked again at a time that is no row. */
  rearm(): void {
    this.#arm();
  }

  #arm(): void {
    if (this.#plan === undefined) return;
    const next = planDeadline(this.#plan, Math.min(this.#look.at, this.asks.laterAt));
    if (next !== undefined) this.#alarm.setBy(next.at);
  }
}

export function noSuchPlan(): BerthError {
  return new BerthError("not_found", "No such plan for this key.", {
    hint: "PUT /v1/plans/:plan makes one.",
  });
}
