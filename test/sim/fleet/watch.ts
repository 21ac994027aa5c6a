/**
 * Owns what must hold at every moment of a history of many objects, beyond what each sandbox's own observer holds:
 * one verdict for a run, one sandbox for a scope, no list that hides or invents.
 */
import type { ParticipantDecision } from "../../../src/core/plan/pending.ts";
import { isEnding } from "../../../src/core/sandbox/step.ts";
import type { PlanCaller } from "../../../src/objects/plan/ports.ts";
import type { SandboxActor } from "../../../src/objects/sandbox/actor.ts";
import type { ListedSandbox } from "../../../src/protocol/directory.ts";
import type { EventData } from "../../../src/protocol/event.ts";
import type { Fleet } from "./fleet.ts";

export class Watch {
  readonly #fleet: Fleet;
  readonly #verdicts = new Map<string, Map<string, ParticipantDecision>>();
  /** Answered to a caller: from then on a list has it, until it is over. */
  readonly #answered = new Set<string>();
  /** Made by a plan, not by a caller. */
  readonly madeForPlans = new Set<string>();
  /** Whose end was answered to a caller. */
  readonly ended = new Set<string>();

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  /** A verdict has reached a member. */
  told({ plan, run }: PlanCaller, id: string, verdict: ParticipantDecision): void {
    const key = `${plan} ${run}`;
    const said = this.#verdicts.get(key) ?? new Map<string, ParticipantDecision>();
    this.#verdicts.set(key, said);
    const before = said.get(id);
    if (before !== undefined && before !== verdict) {
      this.#fleet.fail("one run, one verdict", `${key}: ${id} was told ${before} and ${verdict}`);
    }
    said.set(id, verdict);
    this.#fleet.count("outcome", `a verdict: ${verdict}`);
    const mode = this.#fleet.plan(plan).runOf(run)?.mode;
    if (mode === "atomic" && new Set(said.values()).size > 1) {
      this.#fleet.fail("one run, one verdict", `${key}: ${JSON.stringify([...said])}`);
    }
  }

  /** A caller was given this sandbox for this scope: no other of it lives, also while one takes another's place. */
  found(scope: string, id: string): void {
    this.#answered.add(id);
    for (const [other, { observer }] of this.#fleet.sandboxes) {
      if (other === id || observer.facts?.sandbox.spec.scope?.repo !== scope) continue;
      if (!this.#lives(other) || !this.#lives(id)) continue;
      this.#fleet.fail("one sandbox for a scope", `${scope}: ${other} lives, and ${id} was given`);
    }
  }

  /** One was asked to give way, and was not forced to. */
  gaveWay(id: string, { host }: SandboxActor): void {
    const events = host
      .sql<{ data: string }>("SELECT data FROM event ORDER BY seq")
      .map(({ data }) => JSON.parse(data) as EventData);
    const replaced = events.some((event) => event.type === "state" && event.reason === "replaced");
    if (!replaced) return;
    this.#fleet.count("outcome", "one was replaced");
    // The end of a lease that was taken by force says by whom.
    const isTaken = events.some(
      (event) => event.type === "lease" && event.reason === "destroyed" && event.by === undefined,
    );
    if (isTaken) this.#fleet.fail("nobody's lease ends for another sandbox", `${id} was replaced`);
  }

  listed(rows: readonly ListedSandbox[], askedAt: ReadonlySet<string>): void {
    const ids = new Set(rows.map(({ id }) => id));
    for (const id of ids) {
      if (this.#fleet.sandboxes.get(id)?.observer.facts === undefined) {
        this.#fleet.fail("a list invents nothing", `${id} never was`);
      }
    }
    for (const id of askedAt) {
      if (!ids.has(id) && this.#lives(id)) {
        this.#fleet.fail("a list hides nothing", `${id} was answered, lives, and is not listed`);
      }
    }
  }

  /** Those that a list which is asked for now must show, if they live until it is answered. */
  get answered(): ReadonlySet<string> {
    return new Set([...this.#answered].filter((id) => this.#lives(id)));
  }

  #lives(id: string): boolean {
    const facts = this.#fleet.sandboxes.get(id)?.observer.facts;
    return facts !== undefined && !isEnding(facts.sandbox.state);
  }
}
