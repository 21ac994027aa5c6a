/**
 * Changes the state of a plan participant: the step, its rows and its events in one commit, then the release of the
 * leases, queue places and checkpoints that the step frees. The steps are in src/core/plan.
 */
import { leaseLostError } from "../../../core/lease/refusals.ts";
import {
  type Participant,
  type ParticipantReply,
  resourcesOf,
  ticketOf,
} from "../../../core/plan/participant/participant.ts";
import { type ParticipantEvent, stepParticipant } from "../../../core/plan/participant/step.ts";
import type { SandboxRecord } from "../../../core/sandbox/record.ts";
import type { SandboxActor } from "../actor.ts";
import { discardCheckpoint } from "../lifecycle/checkpoint-removal.ts";
import { listRows } from "../lifecycle/checkpoint-rows.ts";

export class ParticipantState {
  readonly #actor: SandboxActor;
  /** What steps freed but could not release yet: the next step begins with it. */
  readonly #freed: (() => void)[] = [];

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  get current(): Participant | null {
    return this.#actor.facts.participant;
  }

  /** Throws the error with which the step refuses the event. Its message number is recorded all the same. */
  apply(
    event: ParticipantEvent,
    { sandbox, record }: { sandbox?: SandboxRecord; record?: () => void } = {},
  ): Exclude<ParticipantReply, { refuse: unknown }> {
    this.#releaseFreed();
    const { participant, reply, releases, events } = stepParticipant(this.current, event);
    const change = sandbox === undefined ? { participant } : { participant, sandbox };
    if (participant === this.current) record?.();
    else this.#actor.commit(change, events, `plan: ${event.type}`, undefined, record);
    for (const id of releases.checkpoints)
      this.#freed.push(() => discardCheckpoint(this.#actor, id));
    for (const ticket of releases.tickets) this.#freed.push(() => this.release(ticket));
    this.#releaseFreed();
    if ("refuse" in reply) throw reply.refuse;
    return reply;
  }

  hasTicket(ticket: string): boolean {
    return this.#actor.existing !== undefined && ticketOf(this.current) === ticket;
  }

  /** The token of the lease that this ticket was granted, while it lasts. */
  leaseToken(ticket: string): string {
    const { state, ended } = this.#actor.facts.lease;
    if (state.name === "held" && state.grant.ticket === ticket) return state.grant.token;
    throw leaseLostError(ended.findLast((lease) => lease.ticket === ticket)?.reason ?? "unknown");
  }

  /** Whether the run holds its lease without a time limit. */
  hasPinnedLease(ticket: string): boolean {
    const { state } = this.#actor.facts.lease;
    return state.name === "held" && state.grant.ticket === ticket && state.pinned === true;
  }

  /** The ticket with which the run queues again: a used ticket is granted no second lease. */
  requeue(run: number, ticket: string): string {
    if (!this.#actor.facts.lease.ended.some((lease) => lease.ticket === ticket)) return ticket;
    const reply = this.apply({ type: "requeue", run, ticket: this.#actor.host.randomId(32) });
    if (!("ticket" in reply)) throw new Error("a requeued run has a ticket");
    return reply.ticket;
  }

  /** Releases the lease, or leaves its queue. A lease in use is released when its call ends. */
  release(ticket: string): void {
    if (this.#actor.existing === undefined) return;
    const { state } = this.#actor.facts.lease;
    if (state.name === "held" && state.grant.ticket === ticket) {
      this.#actor.stepLease({ type: "release", token: state.grant.token, force: false });
    } else {
      this.#actor.stepLease({ type: "leave", ticket });
      this.#actor.waiters.wakeTurn(ticket);
    }
  }

  #releaseFreed(): void {
    for (const free of [...this.#freed]) {
      free();
      this.#freed.shift();
    }
  }

  /** Called by a fresh instance: releases what an earlier one saved or leased for a run that does not need it. */
  recover(): void {
    const { checkpoints } = resourcesOf(this.current);
    for (const row of listRows(this.#actor.host)) {
      if (row.used_by === "plan" && !checkpoints.includes(row.id))
        discardCheckpoint(this.#actor, row.id);
    }
    const { state } = this.#actor.facts.lease;
    if (state.name !== "held" || state.pinned !== true) return;
    if (!this.hasTicket(state.grant.ticket)) this.release(state.grant.ticket);
  }
}
