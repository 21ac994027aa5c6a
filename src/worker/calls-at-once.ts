/** Bounds how many calls of one tenant may wait for their response, and counts all of them. */
import { BerthError } from "../protocol/errors.ts";

/** The continuation of a call whose caller has gone never runs, so a call stops to count after this. */
const countedMs = 60_000;

type Call = { since: number };

export class CallsAtOnce {
  /** Each with the oldest first. */
  readonly #tenants = new Map<string, Set<Call>>();
  readonly #now: () => number;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  get count(): number {
    for (const tenant of [...this.#tenants.keys()]) this.#expire(tenant);
    return [...this.#tenants.values()].reduce((sum, calls) => sum + calls.size, 0);
  }

  /** Call the result when the response begins. */
  enter(tenant: string, max = Number.POSITIVE_INFINITY): () => void {
    const calls = this.#expire(tenant) ?? new Set();
    if (calls.size >= max) {
      throw new BerthError(
        "too_many",
        `The tenant has as many calls at once as it may have: ${max}.`,
        {
          hint: "Try again when others have ended. The operator of this installation can raise the quota.",
          facts: { quota: "callsAtOnce", max },
        },
      );
    }
    const call = { since: this.#now() };
    this.#tenants.set(tenant, calls.add(call));
    return () => {
      calls.delete(call);
      if (calls.size === 0 && this.#tenants.get(tenant) === calls) this.#tenants.delete(tenant);
    };
  }

  #expire(tenant: string): Set<Call> | undefined {
    const calls = this.#tenants.get(tenant);
    if (calls === undefined) return undefined;
    for (const call of calls) {
      if (this.#now() - call.since < countedMs) break;
      calls.delete(call);
    }
    if (calls.size === 0) this.#tenants.delete(tenant);
    return calls;
  }
}

export const callsAtOnce = new CallsAtOnce();
