/**
 * A lease for tests, with callers by name, a clock that the test moves, calls in flight, and replies in short words.
 * All transitions are the real ones.
 */
import type { Deadline } from "../../../../src/core/deadline.ts";
import {
  type CallsInFlight,
  type Grant,
  type Lease,
  type LeaseEvent,
  type LeaseReply,
  newLease,
} from "../../../../src/core/lease/lease.ts";
import { checkLease } from "../../../../src/core/lease/refusals.ts";
import { leaseDeadline, stepLease } from "../../../../src/core/lease/step.ts";
import type { BerthError } from "../../../../src/protocol/errors.ts";

export type AcquireOptions = { holder?: string; ttlMs?: number; queueMs?: number };

export const second = 1_000;
export const minute = 60 * second;

export class LeaseHarness {
  lease: Lease = newLease;
  now = Date.UTC(2030, 0, 1);
  inFlight: CallsInFlight = { others: 0, own: 0 };
  /** The last refusal, for tests that check its message. */
  refused: BerthError | undefined;
  #tokens = 0;

  after(ms: number): this {
    this.now += ms;
    return this;
  }

  step(event: LeaseEvent): string {
    const { lease, reply } = stepLease(this.lease, event, this.now, this.inFlight);
    this.lease = lease;
    this.refused = "refuse" in reply ? reply.refuse : undefined;
    return inWords(reply);
  }

  /** Each call brings a new token, as the object does. */
  acquire(ticket: string, wish: AcquireOptions = {}): string {
    this.#tokens += 1;
    const { holder = ticket, ttlMs = 30 * second, queueMs = 10 * minute } = wish;
    const token = `token ${this.#tokens}`;
    return this.step({ type: "acquire", ticket, token, holder, ttlMs, queueMs });
  }

  /** Grants the lease to `ticket` at once and returns the token. */
  held(ticket: string, wish: AcquireOptions = {}): string {
    const said = this.acquire(ticket, wish);
    if (said !== "granted") throw new Error(`${ticket} was to be granted at once, but: ${said}`);
    return this.grant.token;
  }

  release(token: string, force = false): string {
    return this.step({ type: "release", token, force });
  }

  renew(token: string, ttlMs?: number): string {
    return this.step({ type: "renew", token, ttlMs });
  }

  used(token: string): string {
    return this.step({ type: "used", token });
  }

  cut(token: string, graceMs = 3 * second): string {
    return this.step({ type: "cut", token, graceMs });
  }

  tick(): string {
    return this.step({ type: "tick" });
  }

  /** The result of the lease check for a gated call. */
  check(token?: string): string {
    const refused = checkLease(this.lease, token);
    this.refused = refused;
    return refused === undefined ? "passes" : inWords({ refuse: refused });
  }

  get state(): string {
    return this.lease.state.name;
  }

  get grant(): Grant {
    const { state } = this.lease;
    if (state.name !== "held") throw new Error(`nobody holds the lease: it is ${state.name}`);
    return state.grant;
  }

  /** How long the lease is still held. */
  get leftMs(): number {
    const { state } = this.lease;
    if (state.name !== "held") throw new Error(`nobody holds the lease: it is ${state.name}`);
    return state.expiresAt - this.now;
  }

  get queue(): string[] {
    return this.lease.waiters.map(({ ticket }) => ticket);
  }

  get deadline(): Deadline | undefined {
    return leaseDeadline(this.lease, this.inFlight);
  }
}

/** Ann holds the lease with this token. */
export function heldByAnn(options: AcquireOptions = {}): { harness: LeaseHarness; ann: string } {
  const harness = new LeaseHarness();
  return { harness, ann: harness.held("ann", options) };
}

export function inWords(reply: LeaseReply): string {
  if ("granted" in reply) return "granted";
  if ("queued" in reply) return `queued ${reply.queued.position}`;
  if ("released" in reply) return reply.released;
  if ("done" in reply) return "done";
  const { code, facts } = reply.refuse;
  return code === "lease_lost" ? `${code} ${facts.reason}` : code;
}
