/**
 * What a plan asks of a sandbox: join, leave, lease it for a run, prepare, and carry out the decision. Slow steps run
 * once for all requests that wait for them; the state is checked again, in one step with what follows, when they are
 * done.
 */
import {
  staleMembershipError,
  staleRunError,
  ticketOf,
} from "../../../core/plan/participant/participant.ts";
import type { ParticipantEvent } from "../../../core/plan/participant/step.ts";
import type { ParticipantDecision } from "../../../core/plan/pending.ts";
import type { PartResult, Vote } from "../../../core/plan/record.ts";
import { failureOf } from "../../../core/plan/run.ts";
import { admitCall, destroyedError } from "../../../core/sandbox/admit.ts";
import { isEnding, stepSandbox } from "../../../core/sandbox/step.ts";
import type { Changes } from "../../../protocol/checkpoint.ts";
import { asBerthError, BerthError } from "../../../protocol/errors.ts";
import { limits } from "../../../protocol/limits.ts";
import type { PlanCaller } from "../../plan/ports.ts";
import { sleep, withTimeout } from "../../shared/timeout.ts";
import type { SandboxActor } from "../actor.ts";
import { beginExclusive, ensureRunning, newStart } from "../lease/gated-admission.ts";
import { acquire, acquireOrThrow } from "../lease/leases.ts";
import { discardCheckpoint } from "../lifecycle/checkpoint-removal.ts";
import { type CheckpointRow, findRow } from "../lifecycle/checkpoint-rows.ts";
import {
  isSettled,
  readyRow,
  renewExpiry,
  saveTree,
  waitUntilSettled,
} from "../lifecycle/checkpoints.ts";
import { lastMove, saveMove } from "./participant-rows.ts";
import { ParticipantState } from "./participant-state.ts";

type RunRef = Omit<PlanCaller, "tenant">;
type RunningStep<T> = { ticket: string; result: Promise<T> };

export class PlanParticipant {
  readonly #actor: SandboxActor;
  readonly #state: ParticipantState;
  #leasing: RunningStep<null> | undefined;
  #preparing: RunningStep<Vote> | undefined;

  constructor(actor: SandboxActor) {
    this.#actor = actor;
    this.#state = new ParticipantState(actor);
  }

  /** Resolves when the Directory lists it, or could have. */
  async join({ plan, run }: RunRef, move: number): Promise<null> {
    this.#actor.refuseIfDestroyed();
    const { host } = this.#actor;
    const last = lastMove(host, plan);
    // A late message, after the plan removed this sandbox, would make it a member that the plan does not know.
    if (move < last || (move === last && this.#state.current === null))
      throw staleMembershipError(plan, last);
    this.#state.apply({ type: "join", plan, run }, { record: () => saveMove(host, plan, move) });
    await this.#actor.outbox.waitUntilListed();
    return null;
  }

  async leave({ plan }: RunRef, move: number): Promise<null> {
    const { host } = this.#actor;
    // It has joined again since.
    if (move < lastMove(host, plan)) return null;
    this.#state.apply({ type: "leave", plan }, { record: () => saveMove(host, plan, move) });
    await this.#actor.outbox.waitUntilListed();
    return null;
  }

  async hold({ plan, run }: RunRef, waitMs: number): Promise<null> {
    this.#actor.refuseIfDestroyed();
    const newTicket = this.#actor.host.randomId(32);
    const reply = this.#state.apply({ type: "hold", plan, run, ticket: newTicket });
    if (!("ticket" in reply)) throw new Error("a member that is to be held has a ticket");
    const { ticket } = reply;
    if (this.#leasing?.ticket === ticket) return this.#leasing.result;
    const result = this.#leaseForRun({ plan, run }, ticket, waitMs).finally(() => {
      if (this.#leasing?.ticket === ticket) this.#leasing = undefined;
    });
    this.#leasing = { ticket, result };
    return result;
  }

  async prepare({ plan, run }: RunRef, kind: "commit" | "rollback"): Promise<Vote> {
    this.#actor.refuseIfDestroyed();
    const reply = this.#state.apply({ type: "prepare", plan, run });
    if ("vote" in reply) return reply.vote;
    if (!("ticket" in reply)) throw new Error("a member that may prepare has a lease");
    const { ticket } = reply;
    if (kind === "rollback") return this.#voteOnRollback({ plan, run }, ticket);
    if (this.#preparing?.ticket === ticket) return this.#preparing.result;
    const result = this.#save({ plan, run }, ticket).finally(() => {
      if (this.#preparing?.ticket === ticket) this.#preparing = undefined;
      // A step that was overtaken could not release the lease while it used it.
      if (!this.#state.hasTicket(ticket)) this.#state.release(ticket);
    });
    this.#preparing = { ticket, result };
    return result;
  }

  async finish(
    { plan, run }: RunRef,
    decision: ParticipantDecision,
  ): Promise<PartResult | "again"> {
    const until = this.#actor.host.clock() + limits.planFinishMs;
    if (decision === "abort" && !(await this.#hasPrepared({ plan, run }))) return "again";
    for (;;) {
      const { state } = this.#actor.facts.sandbox;
      const reply = this.#stepFinish({ plan, run }, decision);
      if ("ended" in reply) return reply.ended;
      const remainingMs = until - this.#actor.host.clock();
      if ("restore" in reply && isSettled(state.name)) {
        const isHeld = this.#state.hasPinnedLease(ticketOf(this.#state.current) ?? "");
        if (isHeld) this.#restore({ plan, run }, reply.restore);
        else if (!(await this.#leaseAgain({ plan, run }, remainingMs))) return "again";
        continue;
      }
      if (remainingMs <= 0) return "again";
      if ("later" in reply) await this.#waitUntilTime(reply.later, remainingMs);
      else if (isSettled(state.name)) throw new Error("a restore that is waited for is a start");
      else await this.#actor.waitUntil((record) => isSettled(record.state.name), remainingMs);
    }
  }

  recover(): void {
    this.#state.recover();
  }

  /** Queues for the lease like every caller; the lease lasts as long as the run. */
  async #leaseForRun({ plan, run }: RunRef, ticket: string, waitMs: number): Promise<null> {
    if (this.#state.current?.phase.name !== "holding") {
      this.#state.leaseToken(ticket);
      return null;
    }
    const call = { holder: `plan:${plan}`, ttlMs: limits.leaseTtlMs, waitMs, ticket };
    const token = await acquireOrThrow(this.#actor, call, () => {
      if (this.#state.hasTicket(ticket)) return;
      throw new BerthError("stale_run", `The run ${run} of the plan ${plan} is over here.`);
    });
    const until = this.#actor.now() + limits.planPrepareMs;
    const reply = this.#actor.stepLease({ type: "pin", token, until });
    if ("refuse" in reply) throw reply.refuse;
    this.#state.apply({ type: "held", plan, run, ticket });
    return null;
  }

  #stepFinish({ plan, run }: RunRef, decision: ParticipantDecision) {
    const { state } = this.#actor.facts.sandbox;
    if (!isEnding(state) || !("reason" in state)) {
      const now = this.#actor.now();
      return this.#state.apply({ type: "finish", plan, run, decision: decision, now });
    }
    const error = failureOf(destroyedError(state.reason));
    return this.#state.apply({ type: "fail", plan, run, error });
  }

  /**
   * The run lost its lease after the decision: it queues for it again, and the current holder is not interrupted.
   * False: it still waits, and keeps its place for the next request.
   */
  async #leaseAgain({ plan, run }: RunRef, waitMs: number): Promise<boolean> {
    const ticket = this.#state.requeue(run, ticketOf(this.#state.current) ?? "");
    const { leaseTtlMs: ttlMs, leaseQueueMaxMs: queueMs } = limits;
    const call = { holder: `plan:${plan}`, ttlMs, waitMs: Math.max(0, waitMs), queueMs, ticket };
    const isCurrentRun = () => this.#state.hasTicket(ticket);
    try {
      const lease = await acquire(this.#actor, call, () => {
        if (!isCurrentRun()) throw staleRunError(run);
      });
      if (!("token" in lease)) return false;
      const until = this.#actor.now() + limits.planPrepareMs;
      return "granted" in this.#actor.stepLease({ type: "pin", token: lease.token, until });
    } catch (error) {
      if (asBerthError(error) === undefined) throw error;
      // The caller sees the end of the sandbox, or of the run, when it checks again.
      return !isCurrentRun() || isEnding(this.#actor.facts.sandbox.state);
    }
  }

  #waitUntilTime(time: number, waitMs: number): Promise<void> {
    return sleep(this.#actor.host, Math.min(time - this.#actor.now(), waitMs));
  }

  async #save({ plan, run }: RunRef, ticket: string): Promise<Vote> {
    const caller = { token: this.#state.leaseToken(ticket), mayWake: true };
    const options = { what: "a commit of a plan", counted: true };
    const end = await beginExclusive(this.#actor, caller, options);
    try {
      const { id, handle } = await saveForPlan(this.#actor);
      try {
        const changes = await compareWithCommit(this.#actor, handle);
        this.#actor.refuseIfDestroyed();
        // A holder in between may have changed files.
        this.#state.leaseToken(ticket);
        const vote: Vote = { yes: { checkpoint: id, changes } };
        return this.#applyPrepared({ plan, run, ticket, vote, preparedCheckpoint: id });
      } catch (error) {
        discardCheckpoint(this.#actor, id);
        throw error;
      }
    } finally {
      end();
    }
  }

  /** Votes on a rollback: whether there is a checkpoint to return to. */
  #voteOnRollback({ plan, run }: RunRef, ticket: string): Vote {
    this.#state.leaseToken(ticket);
    const checkpoint = this.#state.current?.committed?.checkpoint ?? null;
    try {
      if (checkpoint !== null) readyRow(this.#actor, checkpoint);
    } catch (error) {
      const expected = asBerthError(error);
      if (expected === undefined) throw error;
      return { no: failureOf(expected) };
    }
    const vote: Vote = { yes: { checkpoint, changes: null } };
    return this.#applyPrepared({ plan, run, ticket, vote, preparedCheckpoint: null });
  }

  /** Starts the restore of the last commit, in one step with the row that waits for it. */
  #restore({ plan, run }: RunRef, checkpoint: string): void {
    try {
      const start = { ...newStart(this.#actor), snapshot: renewExpiry(this.#actor, checkpoint) };
      const { startId } = start;
      const { sandbox } = this.#actor.facts;
      const restored = stepSandbox(sandbox, { type: "restore", start }, this.#actor.now());
      this.#state.apply({ type: "restoring", run, startId }, { sandbox: restored });
    } catch (error) {
      const expected = asBerthError(error);
      if (expected === undefined) throw error;
      this.#state.apply({ type: "fail", plan, run, error: failureOf(expected) });
    }
  }

  /** Whether no preparation for this run is still in progress; waits for it for a while. */
  async #hasPrepared({ plan, run }: RunRef): Promise<boolean> {
    const participant = this.#state.current;
    const preparing = this.#preparing;
    if (preparing === undefined || !this.#state.hasTicket(preparing.ticket)) return true;
    if (participant?.plan !== plan || participant.run !== run) return true;
    const done = preparing.result.then(
      () => true,
      () => true,
    );
    return withTimeout(this.#actor.host, done, limits.planAbortMs).catch(() => false);
  }

  #applyPrepared(event: Omit<Extract<ParticipantEvent, { type: "prepared" }>, "type">): Vote {
    const reply = this.#state.apply({ type: "prepared", ...event });
    if (!("vote" in reply)) throw new Error("a member that has prepared has voted");
    return reply.vote;
  }
}

async function saveForPlan(actor: SandboxActor): Promise<CheckpointRow> {
  await waitUntilSettled(actor, limits.snapshotTimeoutMs);
  actor.refuseIfDestroyed();
  try {
    return await saveTree(actor, { name: null, usedBy: "plan" });
  } catch (error) {
    // If the sandbox has ended, that is the reason why it could not be saved.
    actor.refuseIfDestroyed();
    if (asBerthError(error)?.code !== "not_running") throw error;
  }
  // A sandbox that has never run has no tree: it is started once to get one, if it may be.
  const admission = admitCall(actor.facts.sandbox, true);
  if ("refuse" in admission) throw admission.refuse;
  await ensureRunning(actor, true);
  return saveTree(actor, { name: null, usedBy: "plan" });
}

/** Null if the comparison is not possible. */
async function compareWithCommit(actor: SandboxActor, handle: string): Promise<Changes | null> {
  const { participant } = actor.facts;
  const committed = participant?.committed ?? null;
  const from = committed === null ? undefined : findRow(actor.host, committed.checkpoint)?.handle;
  if (committed !== null && from === undefined) return null;
  try {
    const listMax = limits.changedPathsMax;
    const changes = await actor.container.changes({ from, to: handle, listMax });
    return changes ?? null;
  } catch (error) {
    const expected = asBerthError(error);
    if (expected === undefined) throw error;
    // The tree is what is committed; without a list of changes it counts as changed.
    actor.host.log({
      sandbox: actor.facts.sandbox.spec.id,
      failed: "compare",
      message: expected.message,
    });
    return null;
  }
}
