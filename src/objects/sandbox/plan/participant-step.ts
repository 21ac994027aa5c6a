/**
 * Owns the one way in which a member's seat changes: the step, its rows and its events in one commit, and what the
 * step lets go (leases, places in the queue, checkpoints) together with it. Does not own the steps (core/plan).
 */
import { leaseLost } from "../../../core/lease/refusals.ts";
import { neededBy, type Seat, ticketOf } from "../../../core/plan/participant/participant.ts";
import { type SeatEvent, stepSeat } from "../../../core/plan/participant/step.ts";
import type { SeatReply } from "../../../core/plan/participant/transition.ts";
import type { SandboxRecord } from "../../../core/sandbox/record.ts";
import type { SandboxActor } from "../actor.ts";
import { giveUp } from "../lifecycle/checkpoint-removal.ts";
import { rows } from "../lifecycle/checkpoint-rows.ts";

export class MemberSeat {
  readonly #actor: SandboxActor;
  /** What steps have freed and is not let go yet: where that could not be written, the next step begins with it. */
  readonly #freed: (() => void)[] = [];

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  get now(): Seat | null {
    return this.#actor.facts.seat;
  }

  /** Throws what the step is refused with; that has been heard too. */
  move(
    event: SeatEvent,
    { sandbox, hear }: { sandbox?: SandboxRecord; hear?: () => void } = {},
  ): Exclude<SeatReply, { refuse: unknown }> {
    this.#letGoFreed();
    const { seat, reply, frees, tells } = stepSeat(this.now, event);
    const change = sandbox === undefined ? { seat } : { seat, sandbox };
    if (seat === this.now) hear?.();
    else this.#actor.commit(change, tells, `plan: ${event.type}`, undefined, hear);
    for (const id of frees.checkpoints) this.#freed.push(() => giveUp(this.#actor, id));
    for (const ticket of frees.tickets) this.#freed.push(() => this.letGo(ticket));
    this.#letGoFreed();
    if ("refuse" in reply) throw reply.refuse;
    return reply;
  }

  isOf(ticket: string): boolean {
    return this.#actor.known !== undefined && ticketOf(this.now) === ticket;
  }

  /** Of the lease that was got by this ticket, while it lasts. */
  token(ticket: string): string {
    const { state, ended } = this.#actor.facts.lease;
    if (state.name === "held" && state.grant.ticket === ticket) return state.grant.token;
    throw leaseLost(ended.findLast((one) => one.ticket === ticket)?.reason ?? "unknown");
  }

  /** Whether the run has its lease, for as long as it wants. */
  holds(ticket: string): boolean {
    const { state } = this.#actor.facts.lease;
    return state.name === "held" && state.grant.ticket === ticket && state.pinned === true;
  }

  /** By what the run queues again whose lease was taken away: a ticket that has had its lease gets no other. */
  requeued(run: number, ticket: string): string {
    if (!this.#actor.facts.lease.ended.some((one) => one.ticket === ticket)) return ticket;
    const reply = this.move({ type: "requeue", run, ticket: this.#actor.host.draw(32) });
    if (!("ticket" in reply)) throw new Error("who queues again has a ticket");
    return reply.ticket;
  }

  /** The lease, or the place in its queue. Never while a call of its own still runs: that lets go when it ends. */
  letGo(ticket: string): void {
    if (this.#actor.known === undefined) return;
    const { state } = this.#actor.facts.lease;
    if (state.name === "held" && state.grant.ticket === ticket) {
      this.#actor.lease({ type: "release", token: state.grant.token, force: false });
    } else {
      this.#actor.lease({ type: "leave", ticket });
      this.#actor.watchers.wakeTurn(ticket);
    }
  }

  #letGoFreed(): void {
    for (const letGo of [...this.#freed]) {
      letGo();
      this.#freed.shift();
    }
  }

  /** A fresh instance: what an earlier one had saved or leased for a run that does not know of it. */
  takeUp(): void {
    const { checkpoints } = neededBy(this.now);
    for (const row of rows(this.#actor.host)) {
      if (row.used_by === "plan" && !checkpoints.includes(row.id)) giveUp(this.#actor, row.id);
    }
    const { state } = this.#actor.facts.lease;
    if (state.name !== "held" || state.pinned !== true) return;
    if (!this.isOf(state.grant.ticket)) this.letGo(state.grant.ticket);
  }
}
