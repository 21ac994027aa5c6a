/**
 * Invariants that hold at every moment of a fleet history, in addition to those of each sandbox's observer: one decision
 * for a run, one sandbox for a scope, and lists that neither hide nor invent sandboxes.
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
  readonly #decisions = new Map<string, Map<string, ParticipantDecision>>();
  /** Sandboxes that a caller got: from then on lists contain them until they end. */
  readonly #answered = new Set<string>();
  /** Sandboxes that a plan created. */
  readonly madeForPlans = new Set<string>();
  /** Sandboxes whose end a caller got. */
  readonly ended = new Set<string>();

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  /** A decision has reached a member. */
  decisionArrived({ plan, run }: PlanCaller, id: string, decision: ParticipantDecision): void {
    const key = `${plan} ${run}`;
    const decisions = this.#decisions.get(key) ?? new Map<string, ParticipantDecision>();
    this.#decisions.set(key, decisions);
    const before = decisions.get(id);
    if (before !== undefined && before !== decision) {
      this.#fleet.fail("one run, one decision", `${key}: ${id} got ${before} and ${decision}`);
    }
    decisions.set(id, decision);
    this.#fleet.count("outcome", `a decision: ${decision}`);
    const mode = this.#fleet.plan(plan).runOf(run)?.mode;
    if (mode === "atomic" && new Set(decisions.values()).size > 1) {
      this.#fleet.fail("one run, one decision", `${key}: ${JSON.stringify([...decisions])}`);
    }
  }

  /** A caller got this sandbox for this scope: no other one of the scope may exist, even during a replacement. */
  foundSandbox(scope: string, id: string): void {
    this.#answered.add(id);
    for (const [other, { observer }] of this.#fleet.sandboxes) {
      if (other === id || observer.facts?.sandbox.spec.scope?.repo !== scope) continue;
      if (!this.#isAlive(other) || !this.#isAlive(id)) continue;
      this.#fleet.fail(
        "one sandbox for a scope",
        `${scope}: ${other} exists, and ${id} was returned`,
      );
    }
  }

  /** A sandbox gave way without force. */
  gaveWay(id: string, { host }: SandboxActor): void {
    const events = host
      .sql<{ data: string }>("SELECT data FROM event ORDER BY seq")
      .map(({ data }) => JSON.parse(data) as EventData);
    const replaced = events.some((event) => event.type === "state" && event.reason === "replaced");
    if (!replaced) return;
    this.#fleet.count("outcome", "one was replaced");
    // A lease that was ended by force names who did it.
    const isTaken = events.some(
      (event) => event.type === "lease" && event.reason === "destroyed" && event.by === undefined,
    );
    if (isTaken) this.#fleet.fail("nobody's lease ends for another sandbox", `${id} was replaced`);
  }

  listed(rows: readonly ListedSandbox[], expected: ReadonlySet<string>): void {
    const ids = new Set(rows.map(({ id }) => id));
    for (const id of ids) {
      if (this.#fleet.sandboxes.get(id)?.observer.facts === undefined) {
        this.#fleet.fail("a list invents nothing", `${id} never was`);
      }
    }
    for (const id of expected) {
      if (!ids.has(id) && this.#isAlive(id)) {
        this.#fleet.fail("a list hides nothing", `${id} was returned, exists, and is not listed`);
      }
    }
  }

  /** The sandboxes that a list must contain if they exist until its response. */
  get answered(): ReadonlySet<string> {
    return new Set([...this.#answered].filter((id) => this.#isAlive(id)));
  }

  #isAlive(id: string): boolean {
    const facts = this.#fleet.sandboxes.get(id)?.observer.facts;
    return facts !== undefined && !isEnding(facts.sandbox.state);
  }
}
