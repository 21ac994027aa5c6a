/** Commits every change of a plan: decides, writes rows, arms the alarm, and only then sends requests. */
import { backOffMs } from "../../core/deadline.ts";
import { openPlan, type PlanIdentity } from "../../core/plan/membership.ts";
import { hasPendingRequests, planDeadline } from "../../core/plan/pending.ts";
import type { PlanRecord } from "../../core/plan/record.ts";
import { stepRun } from "../../core/plan/run.ts";
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { NewSandbox } from "../sandbox/lifecycle/lifecycle.ts";
import { Alarm } from "../shared/alarm.ts";
import type { ObjectHost } from "../shared/host.ts";
import { Waiters } from "../shared/waiters.ts";
import type { PlanPorts } from "./ports.ts";
import { PlanRequests } from "./requests.ts";
import { loadPlan, type Retry, savePlan, saveRetry } from "./rows.ts";

/** Rows that are written together with a change but are not part of the record. */
type CommitExtras = {
  /** The call that creates the sandbox of the new member. */
  call?: NewSandbox | undefined;
  write?: (() => void) | undefined;
};

export class PlanActor {
  readonly host: ObjectHost;
  readonly waiters: Waiters;
  readonly requests: PlanRequests;
  #plan: PlanRecord | undefined;
  #retry: Retry;
  #resumed = false;
  readonly #alarm: Alarm;

  constructor(host: ObjectHost, ports: PlanPorts) {
    this.host = host;
    this.waiters = new Waiters(host);
    this.#alarm = new Alarm(host);
    this.requests = new PlanRequests(this, ports);
    const loaded = loadPlan(host);
    this.#plan = loaded?.plan;
    this.#retry = loaded?.retry ?? { tries: 0, dueAt: 0 };
  }

  /** Creates the plan with the first call that names it. Throws if this plan was removed. */
  open(identity: PlanIdentity): PlanRecord {
    this.resume();
    const plan = openPlan(this.#plan, identity);
    if (plan === undefined) throw noSuchPlanError();
    this.commit(plan);
    return plan;
  }

  /** Throws if the plan was removed, for instance while the caller waited. */
  get current(): PlanRecord {
    if (this.#plan?.status === "here") return this.#plan;
    throw noSuchPlanError();
  }

  get record(): PlanRecord | undefined {
    return this.#plan;
  }

  /** Once per instance: aborts an undecided run, because its callers are gone, and continues everything else. */
  resume(): void {
    if (this.#resumed) return;
    this.#resumed = true;
    if (this.#plan === undefined) return;
    this.commit(stepRun(this.#plan, { type: "instance" }, this.host.clock()));
    this.requests.sendPending(this.#plan);
    this.armAlarm();
  }

  step(transition: (plan: PlanRecord, now: number) => PlanRecord): void {
    if (this.#plan !== undefined) this.commit(transition(this.#plan, this.host.clock()));
  }

  /** The only way to change a plan. Either everything is written or nothing. */
  commit(after: PlanRecord, { call, write }: CommitExtras = {}): void {
    const before = this.#plan;
    if (after === before && write === undefined) return;
    const retry = hasPendingRequests(after) ? this.#nextRetry(after, 0) : this.#retry;
    this.host.transaction(() => {
      savePlan(this.host, before, after, call);
      write?.();
      if (retry !== this.#retry) saveRetry(this.host, retry);
    });
    // If the transaction throws, memory must not change either.
    this.#plan = after;
    this.#retry = retry;
    this.armAlarm();
    this.waiters.wakeAll();
    this.requests.sendPending(after);
  }

  /** False if nothing changed until `end`. */
  async waitForChange(end: number): Promise<boolean> {
    return this.waiters.waitForChange(end - this.host.clock());
  }

  async alarm(): Promise<void> {
    this.#alarm.rang();
    this.host.log({ plan: this.record?.name, why: "alarm" });
    this.resume();
    this.step((plan, now) => stepRun(plan, { type: "deadline" }, now));
    const plan = this.#plan;
    if (plan === undefined || !hasPendingRequests(plan)) return;
    if (this.#retry.dueAt <= this.host.clock()) {
      // Requests that are still running do not count as failed.
      const tries = this.#retry.tries + (this.requests.hasFailed ? 1 : 0);
      const minMs = this.requests.hasFailed ? 0 : limits.planUndecidedCheckMs;
      const retry = this.#nextRetry(plan, tries, minMs);
      // Written before the requests are sent, so that one that hangs does not prevent the next retry.
      saveRetry(this.host, retry);
      this.#retry = retry;
      this.requests.retryFailed(plan);
    } else this.requests.sendPending(plan);
    this.armAlarm();
    await this.requests.settle();
  }

  /** When failed requests are sent again. */
  #nextRetry({ run }: PlanRecord, tries: number, minMs = 0): Retry {
    const now = this.host.clock();
    const isUndecided = run !== null && run.decision === null;
    const maxMs = isUndecided ? limits.planUndecidedCheckMs : limits.reportRetryMaxMs;
    const delayMs = Math.max(backOffMs(limits.planRetryMs, tries, maxMs), Math.min(minMs, maxMs));
    const before = this.#retry;
    // A change of the plan never postpones a retry that is due earlier.
    const dueAt = before.dueAt > now ? Math.min(before.dueAt, now + delayMs) : now + delayMs;
    return dueAt === before.dueAt && tries === before.tries ? before : { tries, dueAt };
  }

  /** Call when the time of a recheck has changed, which is not stored. */
  armAlarm(): void {
    if (this.#plan === undefined) return;
    const next = planDeadline(this.#plan, Math.min(this.#retry.dueAt, this.requests.nextRecheckAt));
    if (next !== undefined) this.#alarm.setBy(next.at);
  }
}

export function noSuchPlanError(): BerthError {
  return new BerthError("not_found", "No such plan for this key.", {
    hint: "Create it with PUT /v1/plans/:plan.",
  });
}
