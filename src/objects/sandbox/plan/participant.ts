/**
 * Owns what a plan asks of a sandbox: to join and leave, to let a run in, to prepare, and to do what was decided.
 * Does not own the moves (core/plan/seat-step.ts). What is slow is done once for all who ask; each is looked at again
 * when it is done, in one step with what follows from it.
 */

import { ticketOf } from "../../../core/plan/participant/participant.ts";
import type { SeatEvent } from "../../../core/plan/participant/step.ts";
import { staleMove, staleRun } from "../../../core/plan/participant/transition.ts";
import type { Verdict } from "../../../core/plan/pending.ts";
import type { Ended, Vote } from "../../../core/plan/record.ts";
import { failureOf } from "../../../core/plan/run.ts";
import { destroyedError } from "../../../core/sandbox/admit.ts";
import { isOver, step } from "../../../core/sandbox/step.ts";
import { asBerthError, BerthError } from "../../../protocol/errors.ts";
import { limits } from "../../../protocol/limits.ts";
import type { Asking } from "../../plan/ports.ts";
import type { SandboxActor } from "../actor.ts";
import { alone } from "../lease/exclusive.ts";
import { newStart } from "../lease/gated.ts";
import { acquire, acquireWaiting } from "../lease/leases.ts";
import { giveUp } from "../lifecycle/checkpoint-removal.ts";
import { isSettled, readyRow, renewed } from "../lifecycle/checkpoints.ts";
import { refuseWhenOver } from "../lifecycle/lifecycle.ts";
import { heardMove, hearMove } from "./participant-rows.ts";
import { changesOf, saveForPlan } from "./participant-save.ts";
import { MemberSeat } from "./participant-step.ts";

type Named = Omit<Asking, "tenant">;
type UnderWay<T> = { ticket: string; done: Promise<T> };

export class Member {
  readonly #actor: SandboxActor;
  readonly #seat: MemberSeat;
  #holding: UnderWay<null> | undefined;
  #preparing: UnderWay<Vote> | undefined;

  constructor(actor: SandboxActor) {
    this.#actor = actor;
    this.#seat = new MemberSeat(actor);
  }

  /** Answers when lists show it, or could have. */
  async join({ plan, run }: Named, move: number): Promise<null> {
    refuseWhenOver(this.#actor);
    const { host } = this.#actor;
    const heard = heardMove(host, plan);
    // One that comes late, when the plan has long let it go, would make it a member that nobody knows of.
    if (move < heard || (move === heard && this.#seat.now === null)) throw staleMove(plan, heard);
    this.#seat.move({ type: "join", plan, run }, { hear: () => hearMove(host, plan, move) });
    await this.#actor.listing.isListed();
    return null;
  }

  async leave({ plan }: Named, move: number): Promise<null> {
    const { host } = this.#actor;
    // It has come back since.
    if (move < heardMove(host, plan)) return null;
    this.#seat.move({ type: "leave", plan }, { hear: () => hearMove(host, plan, move) });
    await this.#actor.listing.isListed();
    return null;
  }

  async hold({ plan, run }: Named, waitMs: number): Promise<null> {
    refuseWhenOver(this.#actor);
    const ticket = this.#ticket({ type: "hold", plan, run, ticket: this.#actor.host.draw(32) });
    if (this.#holding?.ticket === ticket) return this.#holding.done;
    const done = this.#hold({ plan, run }, ticket, waitMs).finally(() => {
      if (this.#holding?.ticket === ticket) this.#holding = undefined;
    });
    this.#holding = { ticket, done };
    return done;
  }

  async prepare({ plan, run }: Named, kind: "commit" | "rollback"): Promise<Vote> {
    refuseWhenOver(this.#actor);
    const reply = this.#seat.move({ type: "prepare", plan, run });
    if ("vote" in reply) return reply.vote;
    if (!("ticket" in reply)) throw new Error("a member that may prepare has a lease");
    const { ticket } = reply;
    if (kind === "rollback") return this.#look({ plan, run }, ticket);
    if (this.#preparing?.ticket === ticket) return this.#preparing.done;
    const done = this.#save({ plan, run }, ticket).finally(() => {
      if (this.#preparing?.ticket === ticket) this.#preparing = undefined;
      // Whoever was overtaken meanwhile could not let go of what it was using.
      if (!this.#seat.isOf(ticket)) this.#seat.letGo(ticket);
    });
    this.#preparing = { ticket, done };
    return done;
  }

  async finish({ plan, run }: Named, verdict: Verdict): Promise<Ended | "again"> {
    const until = this.#actor.host.clock() + limits.planFinishMs;
    if (verdict === "abort" && !(await this.#isQuiet({ plan, run }))) return "again";
    for (;;) {
      const { state } = this.#actor.facts.sandbox;
      const reply = this.#finish({ plan, run }, verdict);
      if ("ended" in reply) return reply.ended;
      const left = until - this.#actor.host.clock();
      if ("restore" in reply && isSettled(state.name)) {
        const isHeld = this.#seat.holds(ticketOf(this.#seat.now) ?? "");
        if (isHeld) this.#restore({ plan, run }, reply.restore);
        else if (!(await this.#holdAgain({ plan, run }, left))) return "again";
        continue;
      }
      if (left <= 0) return "again";
      if ("later" in reply) await this.#untilThen(reply.later, left);
      else if (isSettled(state.name)) throw new Error("a restore that is waited for is a start");
      else await this.#actor.until((record) => isSettled(record.state.name), left);
    }
  }

  takeUp(): void {
    this.#seat.takeUp();
  }

  /** Like everybody it queues; what it gets has no end but the run's. */
  async #hold({ plan, run }: Named, ticket: string, waitMs: number): Promise<null> {
    if (this.#seat.now?.phase.name !== "holding") {
      this.#seat.token(ticket);
      return null;
    }
    const call = { holder: `plan:${plan}`, ttlMs: limits.leaseTtlMs, waitMs, ticket };
    const token = await acquireWaiting(this.#actor, call, () => {
      if (this.#seat.isOf(ticket)) return;
      throw new BerthError("stale_run", `The run ${run} of the plan ${plan} is over here.`);
    });
    const until = this.#actor.now() + limits.planPrepareMs;
    const reply = this.#actor.lease({ type: "pin", token, until });
    if ("refuse" in reply) throw reply.refuse;
    this.#seat.move({ type: "held", plan, run, ticket });
    return null;
  }

  #finish({ plan, run }: Named, verdict: Verdict) {
    const { state } = this.#actor.facts.sandbox;
    if (!isOver(state) || !("reason" in state)) {
      const now = this.#actor.now();
      return this.#seat.move({ type: "finish", plan, run, verdict, now });
    }
    const error = failureOf(destroyedError(state.reason));
    return this.#seat.move({ type: "fail", plan, run, error });
  }

  /**
   * Somebody has taken the lease away since it was decided: the run queues for it like everybody, and whoever has it
   * meanwhile works in peace. False: it has still to wait; its place is kept for it until it is asked again.
   */
  async #holdAgain({ plan, run }: Named, waitMs: number): Promise<boolean> {
    const ticket = this.#seat.requeued(run, ticketOf(this.#seat.now) ?? "");
    const { leaseTtlMs: ttlMs, leaseQueueMaxMs: queueMs } = limits;
    const call = { holder: `plan:${plan}`, ttlMs, waitMs: Math.max(0, waitMs), queueMs, ticket };
    const isOurs = () => this.#seat.isOf(ticket);
    try {
      const lease = await acquire(this.#actor, call, () => {
        if (!isOurs()) throw staleRun(run);
      });
      if (!("token" in lease)) return false;
      const until = this.#actor.now() + limits.planPrepareMs;
      return "granted" in this.#actor.lease({ type: "pin", token: lease.token, until });
    } catch (error) {
      if (asBerthError(error) === undefined) throw error;
      // The end of the sandbox, or of the run here, is seen by whoever looks again.
      return !isOurs() || isOver(this.#actor.facts.sandbox.state);
    }
  }

  async #untilThen(at: number, waitMs: number): Promise<void> {
    const ms = Math.min(at - this.#actor.now(), waitMs);
    await new Promise<void>((resolve) => this.#actor.host.timer(ms, resolve));
  }

  async #save({ plan, run }: Named, ticket: string): Promise<Vote> {
    const caller = { token: this.#seat.token(ticket), mayWake: true };
    const end = await alone(this.#actor, caller, { what: "a commit of a plan", counted: true });
    try {
      const { id, handle } = await saveForPlan(this.#actor);
      try {
        const changes = await changesOf(this.#actor, handle);
        refuseWhenOver(this.#actor);
        // Whoever took it away may have changed files since.
        this.#seat.token(ticket);
        const vote: Vote = { yes: { checkpoint: id, changes } };
        return this.#vote({ type: "prepared", plan, run, ticket, vote, artefact: id });
      } catch (error) {
        giveUp(this.#actor, id);
        throw error;
      }
    } finally {
      end();
    }
  }

  /** Whether there is something to go back to. */
  #look({ plan, run }: Named, ticket: string): Vote {
    this.#seat.token(ticket);
    const checkpoint = this.#seat.now?.committed?.checkpoint ?? null;
    try {
      if (checkpoint !== null) readyRow(this.#actor, checkpoint);
    } catch (error) {
      const known = asBerthError(error);
      if (known === undefined) throw error;
      return { no: failureOf(known) };
    }
    const vote: Vote = { yes: { checkpoint, changes: null } };
    return this.#vote({ type: "prepared", plan, run, ticket, vote, artefact: null });
  }

  /** Its start from the last commit, in one step with the row that waits for it. */
  #restore({ plan, run }: Named, checkpoint: string): void {
    try {
      const start = { ...newStart(this.#actor), snapshot: renewed(this.#actor, checkpoint) };
      const { startId } = start;
      const { sandbox } = this.#actor.facts;
      const restored = step(sandbox, { type: "restore", start }, this.#actor.now());
      this.#seat.move({ type: "restoring", run, startId }, { sandbox: restored });
    } catch (error) {
      const known = asBerthError(error);
      if (known === undefined) throw error;
      this.#seat.move({ type: "fail", plan, run, error: failureOf(known) });
    }
  }

  /** Whether what is being prepared for this run has come to its end, one way or the other. */
  async #isQuiet({ plan, run }: Named): Promise<boolean> {
    const seat = this.#seat.now;
    const preparing = this.#preparing;
    if (preparing === undefined || !this.#seat.isOf(preparing.ticket)) return true;
    if (seat?.plan !== plan || seat.run !== run) return true;
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

  #ticket(event: SeatEvent): string {
    const reply = this.#seat.move(event);
    if (!("ticket" in reply)) throw new Error("a member that is to be held has a ticket");
    return reply.ticket;
  }

  #vote(event: SeatEvent): Vote {
    const reply = this.#seat.move(event);
    if (!("vote" in reply)) throw new Error("a member that has prepared has voted");
    return reply.vote;
  }
}
