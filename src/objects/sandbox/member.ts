/**
 * Owns what a plan asks of a sandbox: to join and leave, to let a run in, to prepare, and to do what was decided.
 * Does not own the moves (core/plan/seat.ts): each is one commit, and what it lets go goes in the same step.
 */
import { leaseLost } from "../../core/lease/refusals.ts";
import type { Verdict } from "../../core/plan/pending.ts";
import type { Ended, Vote } from "../../core/plan/record.ts";
import { failureOf } from "../../core/plan/run.ts";
import {
  keptBySeat,
  type SeatEvent,
  type SeatReply,
  stepSeat,
  ticketOf,
} from "../../core/plan/seat.ts";
import { destroyedError } from "../../core/sandbox/admit.ts";
import { isOver } from "../../core/sandbox/step.ts";
import { asBerthError, BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { Asking } from "../plan/ports.ts";
import type { SandboxActor } from "./actor.ts";
import { alone } from "./alone.ts";
import { rows } from "./checkpoint-rows.ts";
import { giveUp, isSettled, readyRow, renewed } from "./checkpoints.ts";
import { newStart } from "./gated.ts";
import { acquireWaiting } from "./leases.ts";
import { refuseWhenOver } from "./lifecycle.ts";
import { changesOf, saveForPlan } from "./member-save.ts";

type Named = Omit<Asking, "tenant">;

type UnderWay<T> = { ticket: string; done: Promise<T> };

export class Member {
  readonly #actor: SandboxActor;
  #holding: UnderWay<null> | undefined;
  #preparing: UnderWay<Vote> | undefined;

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  /** Answers when lists show it, or could have. */
  async join({ plan, run }: Asking): Promise<null> {
    refuseWhenOver(this.#actor);
    this.#move({ type: "join", plan, run });
    await this.#actor.listing.isListed();
    return null;
  }

  async leave({ plan }: Asking): Promise<null> {
    this.#move({ type: "leave", plan });
    await this.#actor.listing.isListed();
    return null;
  }

  async hold({ plan, run }: Asking, waitMs: number): Promise<null> {
    refuseWhenOver(this.#actor);
    const reply = this.#move({ type: "hold", plan, run, ticket: this.#actor.host.draw(32) });
    if (!("ticket" in reply)) throw new Error("a member that is to be held has a ticket");
    const { ticket } = reply;
    if (this.#holding?.ticket === ticket) return this.#holding.done;
    const done = this.#hold({ plan, run }, ticket, waitMs).finally(() => {
      if (this.#holding?.ticket === ticket) this.#holding = undefined;
    });
    this.#holding = { ticket, done };
    return done;
  }

  async prepare({ plan, run }: Asking, kind: "commit" | "rollback"): Promise<Vote> {
    refuseWhenOver(this.#actor);
    const reply = this.#move({ type: "prepare", plan, run });
    if ("vote" in reply) return reply.vote;
    if (!("ticket" in reply)) throw new Error("a member that may prepare has a lease");
    const { ticket } = reply;
    if (this.#preparing?.ticket === ticket) return this.#preparing.done;
    if (kind === "rollback") return this.#look({ plan, run }, ticket);
    const work = this.#save({ plan, run }, ticket);
    const done = work.finally(() => {
      if (this.#preparing?.ticket === ticket) this.#preparing = undefined;
      // Whoever was overtaken meanwhile could not let go of what it was using.
      if (this.#actor.known !== undefined && ticketOf(this.#actor.facts.seat) !== ticket) {
        this.#letGo(ticket);
      }
    });
    this.#preparing = { ticket, done };
    return done;
  }

  async finish(asking: Asking, verdict: Verdict): Promise<Ended | "again"> {
    const { plan, run } = asking;
    const until = this.#actor.host.clock() + limits.planFinishMs;
    if (verdict === "abort" && !(await this.#isQuiet(asking))) return "again";
    for (;;) {
      const { state } = this.#actor.facts.sandbox;
      const reply =
        isOver(state) && "reason" in state
          ? this.#move({ type: "fail", plan, run, error: failureOf(destroyedError(state.reason)) })
          : this.#move({ type: "finish", plan, run, verdict });
      if ("ended" in reply) return reply.ended;
      if ("restore" in reply && isSettled(state.name)) {
        this.#restore(asking, reply.restore);
        continue;
      }
      const left = until - this.#actor.host.clock();
      if (left <= 0) return "again";
      await this.#actor.until((record) => isSettled(record.state.name), left);
    }
  }

  /** A fresh instance: what an earlier one had saved or leased for a run that does not know of it. */
  takeUp(): void {
    const { seat, lease } = this.#actor.facts;
    const kept = keptBySeat(seat);
    for (const row of rows(this.#actor.host)) {
      if (row.used_by === "plan" && !kept.includes(row.id)) giveUp(this.#actor, row.id);
    }
    const { state } = lease;
    if (state.name === "held" && state.pinned === true && state.grant.ticket !== ticketOf(seat)) {
      this.#letGo(state.grant.ticket);
    }
  }

  async #hold({ plan, run }: Named, ticket: string, waitMs: number): Promise<null> {
    const actor = this.#actor;
    if (actor.facts.seat?.phase.name !== "holding") {
      this.#token(ticket);
      return null;
    }
    const holder = `plan:${plan}`;
    const call = { holder, ttlMs: limits.leaseTtlMs, waitMs, ticket };
    const token = await acquireWaiting(actor, call, () => this.#stillOf({ plan, run }, ticket));
    const until = actor.now() + limits.planPrepareMs;
    const reply = actor.lease({ type: "pin", token, until });
    if ("refuse" in reply) throw reply.refuse;
    this.#move({ type: "held", plan, run, ticket });
    return null;
  }

  async #save({ plan, run }: Named, ticket: string): Promise<Vote> {
    const actor = this.#actor;
    const caller = { token: this.#token(ticket), mayWake: true };
    const end = await alone(actor, caller, { what: "a commit of a plan", counted: true });
    try {
      const { id, handle } = await saveForPlan(actor);
      try {
        const changes = await changesOf(actor, handle);
        refuseWhenOver(actor);
        // Whoever took it away may have changed files since.
        this.#token(ticket);
        const vote: Vote = { yes: { checkpoint: id, changes } };
        return this.#voted({ type: "prepared", plan, run, ticket, vote, artefact: id });
      } catch (error) {
        giveUp(actor, id);
        throw error;
      }
    } finally {
      end();
    }
  }

  #look({ plan, run }: Named, ticket: string): Vote {
    const actor = this.#actor;
    this.#token(ticket);
    const checkpoint = actor.facts.seat?.committed?.checkpoint ?? null;
    try {
      if (checkpoint !== null) readyRow(actor, checkpoint);
    } catch (error) {
      const known = asBerthError(error);
      if (known === undefined) throw error;
      return { no: failureOf(known) };
    }
    const vote: Vote = { yes: { checkpoint, changes: null } };
    return this.#voted({ type: "prepared", plan, run, ticket, vote, artefact: null });
  }

  /** Whether what was being prepared for this run has come to its end, one way or the other. */
  async #isQuiet({ plan, run }: Named): Promise<boolean> {
    const { seat } = this.#actor.facts;
    const preparing = this.#preparing;
    if (seat?.plan !== plan || seat.run !== run) return true;
    if (preparing === undefined || preparing.ticket !== ticketOf(seat)) return true;
    let cancel = () => {};
    const late = new Promise<false>((resolve) => {
      cancel = this.#actor.host.timer(limits.planLetGoMs, () => resolve(false));
    });
    const done = preparing.done.then(
      () => true,
      () => true,
    );
    const isQuiet = await Promise.race([done, late]);
    cancel();
    return isQuiet;
  }

  /** Its start from the last commit, in one step with the row that waits for it. */
  #restore({ plan, run }: Named, checkpoint: string): void {
    const actor = this.#actor;
    try {
      const snapshot = renewed(actor, checkpoint);
      const start = { ...newStart(actor), snapshot };
      this.#move({ type: "restoring", run, startId: start.startId });
      actor.sandbox({ type: "restore", start });
    } catch (error) {
      const known = asBerthError(error);
      if (known === undefined) throw error;
      this.#move({ type: "fail", plan, run, error: failureOf(known) });
    }
  }

  #move(event: SeatEvent): Exclude<SeatReply, { refuse: unknown }> {
    const actor = this.#actor;
    const before = actor.facts.seat;
    const { seat, reply, frees, tells } = stepSeat(before, event);
    if (seat !== before) actor.commit({ seat }, tells, `plan: ${event.type}`);
    for (const id of frees.checkpoints) giveUp(actor, id);
    for (const ticket of frees.tickets) this.#letGo(ticket);
    if ("refuse" in reply) throw reply.refuse;
    return reply;
  }

  #voted(event: SeatEvent): Vote {
    const reply = this.#move(event);
    if (!("vote" in reply)) throw new Error("a member that has prepared has voted");
    return reply.vote;
  }

  /** Of the run's lease, while it is the run's. */
  #token(ticket: string): string {
    const { state, ended } = this.#actor.facts.lease;
    if (state.name === "held" && state.grant.ticket === ticket) return state.grant.token;
    throw leaseLost(ended.findLast((one) => one.ticket === ticket)?.reason ?? "unknown");
  }

  #stillOf({ plan, run }: Named, ticket: string): void {
    if (ticketOf(this.#actor.facts.seat) === ticket) return;
    throw new BerthError("stale_run", `The run ${run} of the plan ${plan} is over here.`);
  }

  /** The lease, or the place in its queue. Never while a call of its own still runs: that lets go when it ends. */
  #letGo(ticket: string): void {
    const actor = this.#actor;
    const { state } = actor.facts.lease;
    if (state.name === "held" && state.grant.ticket === ticket) {
      actor.lease({ type: "release", token: state.grant.token, force: false });
    } else {
      actor.lease({ type: "leave", ticket });
      actor.watchers.wakeTurn(ticket);
    }
  }
}
