/**
 * Owns asking: of each member and of the Directory what the plan wants of them, so many at once, each for so long.
 * Never rejects: whoever does not answer is asked again when the plan looks again. Does not own what answers mean.
 */
import { pending, pendingMoves } from "../../core/plan/pending.ts";
import type { PlanRecord } from "../../core/plan/record.ts";
import { limits } from "../../protocol/limits.ts";
import { UnderWay } from "../shared/background.ts";
import { Refusals } from "../shared/recent-refusals.ts";
import type { PlanActor } from "./actor.ts";
import { perform, type Question } from "./perform.ts";
import type { Ports } from "./ports.ts";

const atOnceMax: Record<Question["type"], number> = {
  hold: 1,
  prepare: limits.planPrepareAtOnceMax,
  finish: limits.planFinishAtOnceMax,
  join: limits.planFinishAtOnceMax,
  leave: limits.planFinishAtOnceMax,
  end: limits.planFinishAtOnceMax,
  unregister: 1,
};

export class Asks {
  readonly ports: Ports;
  /** Of those who could not join, or were not ended. */
  readonly refusals: Refusals;
  readonly #actor: PlanActor;
  readonly #underWay: UnderWay;
  /** Asked in vain since the last look. */
  readonly #failed = new Set<string>();
  /** Of whoever answered that it goes on: when it is asked again. That is an answer, and no silence. */
  readonly #later = new Map<string, number>();

  constructor(actor: PlanActor, ports: Ports) {
    this.#actor = actor;
    this.ports = ports;
    this.#underWay = new UnderWay(actor.place);
    this.refusals = new Refusals(actor.place);
  }

  /** Whether anybody was, since the last look. */
  get areInVain(): boolean {
    return this.#failed.size > 0;
  }

  /** When the next one is asked again of those who answered that it goes on. */
  get laterAt(): number {
    return Math.min(Number.POSITIVE_INFINITY, ...this.#later.values());
  }

  /** After a commit: whoever is to be asked and was not yet, or long enough ago. */
  pursue(plan: PlanRecord): void {
    const now = this.#actor.place.clock();
    for (const [key, at] of this.#later) if (at <= now) this.#later.delete(key);
    for (const ask of asksOf(plan)) {
      const key = keyOf(ask, plan);
      if (this.#underWay.has(key) || this.#failed.has(key) || this.#later.has(key)) continue;
      if (this.#underWay.of(ask.type).length < atOnceMax[ask.type]) this.#begin(key, ask);
    }
  }

  /** Also those that were asked in vain. */
  again(plan: PlanRecord): void {
    this.#failed.clear();
    this.pursue(plan);
  }

  settled(): Promise<void> {
    return this.#underWay.settled();
  }

  #begin(key: string, ask: Question): void {
    const asked = this.#underWay.begin(key, () => this.#ask(key, ask));
    const next = asked.then(() => {
      // There is room for the next one.
      const plan = this.#actor.record;
      if (plan !== undefined) this.pursue(plan);
    });
    this.#actor.place.background(next);
  }

  async #ask(key: string, ask: Question): Promise<void> {
    const { place } = this.#actor;
    try {
      const goesOn = (await perform(this.#actor, this.ports, ask)) === "again";
      const plan = this.#actor.record;
      if (plan === undefined || !asksOf(plan).some((one) => keyOf(one, plan) === key)) return;
      // What changed nothing would change nothing again at once, for ever.
      if (!goesOn) this.#failed.add(key);
      else {
        this.#later.set(key, place.clock() + limits.planAgainMs);
        this.#actor.rearm();
      }
    } catch (error) {
      this.#failed.add(key);
      const message = error instanceof Error ? error.message : String(error);
      place.log({ plan: this.#actor.record?.name, failed: key, message });
    }
  }
}

function asksOf(plan: PlanRecord): Question[] {
  return [...pendingMoves(plan), ...pending(plan)];
}

/** A question of a later run is another one. */
function keyOf(ask: Question, { run }: PlanRecord): string {
  if (ask.type === "unregister") return ask.type;
  const isOfRun = ask.type === "hold" || ask.type === "prepare" || ask.type === "finish";
  return `${ask.type} ${isOfRun ? `${run?.n} ` : ""}${ask.sandbox}`;
}
