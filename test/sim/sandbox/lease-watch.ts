/**
 * The invariants of leases: fences grow, turns come in order of arrival, no waiter is lost, and no other work runs
 * next to a holder. It sees only the rows before and after each commit.
 */
import type { Lease, Waiter } from "../../../src/core/lease/lease.ts";
import { isEnding } from "../../../src/core/sandbox/step.ts";
import type { Facts } from "../../../src/objects/sandbox/store.ts";
import { FixedValues } from "../simulation.ts";
import type { Command } from "./agent.ts";
import type { World } from "./world.ts";

export class LeaseWatch {
  readonly #world: World;
  /** The highest fence that a client or an agent has seen. */
  #answeredFence = 0;
  /** The tokens that clients got, by fence. */
  readonly #answeredGrants: FixedValues;
  readonly #givenUp = new Set<string>();
  /** Waiters that leave by themselves: calls that wait for a lease of their own, and plans that no longer need it. */
  static readonly leavingHolders = ["alone", "plan:"] as const;

  constructor(world: World) {
    this.#world = world;
    this.#answeredGrants = new FixedValues(world, "at most one holder");
  }

  /** A client got the grant: from here on a crash must not undo it. */
  recordGrant(fence: number, token: string): void {
    this.#world.count("lease", "grant received");
    this.#answeredFence = Math.max(this.#answeredFence, fence);
    this.#answeredGrants.set(fence, token);
  }

  /** A client got the release. */
  recordRelease(token: string): void {
    this.#givenUp.add(token);
  }

  onLoaded({ lease }: Facts): void {
    if (lease.fence < this.#answeredFence) {
      const message = `fence ${this.#answeredFence} was answered, ${lease.fence} is left`;
      this.#world.fail("what was answered stays", message);
    }
    this.#checkHolderIsKnown(lease);
  }

  onCommit(before: Facts, after: Facts, now: number): void {
    if (after.lease.fence < before.lease.fence) {
      this.#world.fail("fences only grow", `from ${before.lease.fence} to ${after.lease.fence}`);
    }
    this.#checkHolderIsKnown(after.lease);
    this.#granted(before.lease, after.lease, now);
    for (const ended of after.lease.ended) {
      if (!before.lease.ended.includes(ended)) this.#world.count("lease", `ended: ${ended.reason}`);
    }
    this.#queue(before, after, now);
    this.#drained(before, after);
    this.checkHolder(after, this.#world.observer.running.values());
  }

  /** While the lease is held, the running incarnation has only the holder's work. */
  checkHolder(facts: Facts | undefined, running: Iterable<Command>): void {
    if (facts?.lease.state.name !== "held" || facts.sandbox.state.name !== "running") return;
    const { holder } = facts.lease.state.grant;
    const { incarnation } = facts.sandbox.state.life;
    for (const command of running) {
      if (command.incarnation !== incarnation || command.owner === holder) continue;
      this.#world.fail("gated work never overlaps", `${command.owner} runs while ${holder} holds`);
    }
  }

  #checkHolderIsKnown({ state }: Lease): void {
    if (state.name !== "held") return;
    const { fence, token } = state.grant;
    this.#answeredGrants.check(fence, token);
    if (this.#givenUp.has(token)) {
      this.#world.fail("what was answered stays", "a lease that was released is held again");
    }
  }

  #granted(before: Lease, after: Lease, now: number): void {
    if (after.state.name !== "held") return;
    const { grant } = after.state;
    if (before.state.name === "held" && before.state.grant.token === grant.token) return;
    this.#world.count("outcome", "a lease was granted");
    if (grant.fence <= before.fence) {
      this.#world.fail("fences only grow", `a grant has ${grant.fence} after ${before.fence}`);
    }
    const own = before.waiters.find(({ ticket }) => ticket === grant.ticket);
    const ahead = (waiter: Waiter) => own === undefined || waiter.seq < own.seq;
    const overtaken = before.waiters.find(
      (waiter) => waiter !== own && ahead(waiter) && !isTimeOver(waiter, before, now),
    );
    if (overtaken === undefined) return;
    this.#world.fail("turns come in order", `${grant.holder} overtook ${overtaken.holder}`);
  }

  #queue(before: Facts, after: Facts, now: number): void {
    if (isEnding(after.sandbox.state)) return;
    const remaining = new Set(after.lease.waiters.map(({ seq }) => seq));
    const granted = after.lease.state.name === "held" ? after.lease.state.grant.ticket : undefined;
    for (const waiter of before.lease.waiters) {
      if (remaining.has(waiter.seq) || waiter.ticket === granted) continue;
      if (isTimeOver(waiter, before.lease, now)) continue;
      if (LeaseWatch.leavingHolders.some((word) => waiter.holder.startsWith(word))) continue;
      this.#world.fail("nobody is lost from the queue", `${waiter.holder} is not there any more`);
    }
  }

  #drained(before: Facts, after: Facts): void {
    const was = before.lease.state;
    if (was.name !== "draining" || after.lease.state.name === "draining") return;
    this.#world.count("outcome", was.replace ? "a drain by replacement" : "a drain was confirmed");
    if (after.sandbox.state.name !== "running") return;
    const { incarnation } = after.sandbox.state.life;
    for (const { owner, isLeased, incarnation: other } of this.#world.observer.running.values()) {
      if (!isLeased || owner !== was.holder || other !== incarnation) continue;
      this.#world.fail("nothing runs after its lease was lost", `${owner} still runs`);
    }
  }
}

function isTimeOver(waiter: Waiter, { state, waiters }: Lease, now: number): boolean {
  if (waiter.until <= now || waiter.pollBy <= now) return true;
  return waiters[0] === waiter && state.name === "offered" && state.until <= now;
}
