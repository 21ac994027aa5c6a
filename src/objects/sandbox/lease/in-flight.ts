/**
 * Counts the gated calls in flight and with which lease each runs. It is kept in memory, because a call does not
 * survive its object; the agent reports how many calls an earlier instance left running.
 */
import type { CallsInFlight, Lease } from "../../../core/lease/lease.ts";

export class InFlight {
  readonly #calls = new Map<number, string | undefined>();
  #next = 1;
  /** How many gated calls of an earlier instance still run at the agent. */
  inherited = 0;

  /** `token` is that of the caller's lease, if it has one. */
  begin(token: string | undefined): number {
    const id = this.#next++;
    this.#calls.set(id, token);
    return id;
  }

  end(id: number): void {
    this.#calls.delete(id);
  }

  get size(): number {
    return this.#calls.size + this.inherited;
  }

  /** Calls of a lost lease count for neither: the drain waits for them. */
  busy(lease: Lease): CallsInFlight {
    const held = lease.state.name === "held" ? lease.state.grant.token : undefined;
    let others = 0;
    let own = 0;
    for (const token of this.#calls.values()) {
      if (token === undefined) others++;
      else if (token === held) own++;
    }
    // A lease is only granted while no other call runs, so inherited calls belong to the holder.
    if (held === undefined) others += lease.state.name === "draining" ? 0 : this.inherited;
    else own += this.inherited;
    return { others, own };
  }
}
