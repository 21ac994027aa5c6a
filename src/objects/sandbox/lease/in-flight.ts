/**
 * Owns which gated calls are in flight, and with which lease: memory, because a call does not survive its object.
 * What an earlier instance of the object left running is learnt from the agent, as a number.
 */
import type { Busy, Lease } from "../../../core/lease/lease.ts";

export class InFlight {
  readonly #calls = new Map<number, string | undefined>();
  #next = 1;
  /** Gated work of an earlier instance that the agent still has. */
  #inherited = 0;

  /** `token` is that of the caller's lease, where it has one. */
  begin(token: string | undefined): number {
    const id = this.#next++;
    this.#calls.set(id, token);
    return id;
  }

  end(id: number): void {
    this.#calls.delete(id);
  }

  inherit(count: number): void {
    this.#inherited = count;
  }

  get inherited(): number {
    return this.#inherited;
  }

  get size(): number {
    return this.#calls.size + this.#inherited;
  }

  /** Calls of a lease that was lost count for neither: the drain answers for them. */
  busy(lease: Lease): Busy {
    const held = lease.state.name === "held" ? lease.state.grant.token : undefined;
    let others = 0;
    let own = 0;
    for (const token of this.#calls.values()) {
      if (token === undefined) others++;
      else if (token === held) own++;
    }
    // A lease is only given when nothing of others runs: what is found beside one is its own.
    if (held === undefined) others += lease.state.name === "draining" ? 0 : this.#inherited;
    else own += this.#inherited;
    return { others, own };
  }
}
