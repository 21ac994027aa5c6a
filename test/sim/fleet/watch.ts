/**
 * Owns what must hold at every moment of a history of many objects, beyond what each sandbox's own observer holds:
 * one verdict for a run, one sandbox for a scope, no list that hides or invents.
 */
import type { Verdict } from "../../../src/core/plan/pending.ts";
import { isOver } from "../../../src/core/sandbox/step.ts";
import type { Asking } from "../../../src/objects/plan/ports.ts";
import type { ListedSandbox } from "../../../src/protocol/directory.ts";
import type { Fleet } from "./fleet.ts";

export class Watch {
  readonly #fleet: Fleet;
  readonly #verdicts = new Map<string, Map<string, Verdict>>();
  /** Answered to a caller: from then on a list has it, until it is over. */
  readonly #answered = new Set<string>();
  /** By scope, the one that was answered last. */
  readonly #scopes = new Map<string, string>();
  /** Where somebody has asked for another one, two answers may differ while both live. */
  readonly #replaced = new Set<string>();

  /** Made by a plan, not by a caller. */
  readonly madeForPlans = new Set<string>();
  /** Whose end was answered to a caller. */
  readonly ended = new Set<string>();

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  /** A verdict has reached a member. */
  told({ plan, run }: Asking, id: string, verdict: Verdict): void {
    const key = `${plan} ${run}`;
    const said = this.#verdicts.get(key) ?? new Map<string, Verdict>();
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

  /** A caller asks for another sandbox in the place of the present one. */
  replaces(scope: string): void {
    this.#replaced.add(scope);
  }

  /** The one that was answered last; who asks from now on gets it, while it lives. */
  current(scope: string): string | undefined {
    return this.#scopes.get(scope);
  }

  /** A caller was given this sandbox for this scope; `before` is what was current when it asked. */
  found(scope: string, id: string, before: string | undefined): void {
    this.#answered.add(id);
    const isOther = before !== undefined && before !== id && this.#lives(before);
    if (isOther && !this.#replaced.has(scope)) {
      this.#fleet.fail("one sandbox for a scope", `${scope}: ${before} lives, and ${id} was given`);
    }
    this.#scopes.set(scope, id);
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
    return facts !== undefined && !isOver(facts.sandbox.state);
  }
}
