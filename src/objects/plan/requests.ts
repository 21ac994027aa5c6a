/** Sends the pending requests of a plan, limiting how many of each type run at once. Never rejects. */
import { pendingMembershipRequests, pendingRunRequests } from "../../core/plan/pending.ts";
import type { PlanRecord } from "../../core/plan/record.ts";
import { limits } from "../../protocol/limits.ts";
import { BackgroundTasks } from "../shared/background.ts";
import { RecentRefusals } from "../shared/recent-refusals.ts";
import { messageOf } from "../shared/result.ts";
import type { PlanActor } from "./actor.ts";
import { type PlanRequest, performRequest } from "./perform.ts";
import type { PlanPorts } from "./ports.ts";

const concurrentMax: Record<PlanRequest["type"], number> = {
  hold: 1,
  prepare: limits.planPreparesMax,
  finish: limits.planFinishesMax,
  join: limits.planFinishesMax,
  leave: limits.planFinishesMax,
  end: limits.planFinishesMax,
  unregister: 1,
};

export class PlanRequests {
  readonly ports: PlanPorts;
  /** Why sandboxes could not join or were not ended, for the callers that wait for that. */
  readonly refusals: RecentRefusals;
  readonly #actor: PlanActor;
  readonly #tasks: BackgroundTasks;
  /** Requests that have failed since the last retry. */
  readonly #failed = new Set<string>();
  /** When to repeat requests whose receiver said that its work continues. They count as successful. */
  readonly #recheckAt = new Map<string, number>();

  constructor(actor: PlanActor, ports: PlanPorts) {
    this.#actor = actor;
    this.ports = ports;
    this.#tasks = new BackgroundTasks(actor.host);
    this.refusals = new RecentRefusals(actor.host);
  }

  get hasFailed(): boolean {
    return this.#failed.size > 0;
  }

  /** Infinity if there is nothing to recheck. */
  get nextRecheckAt(): number {
    return Math.min(Number.POSITIVE_INFINITY, ...this.#recheckAt.values());
  }

  /** Sends requests that are not running, have not failed and do not wait for their recheck. */
  sendPending(plan: PlanRecord): void {
    const now = this.#actor.host.clock();
    for (const [key, dueAt] of this.#recheckAt) if (dueAt <= now) this.#recheckAt.delete(key);
    for (const request of pendingRequests(plan)) {
      const key = requestKey(request, plan);
      if (this.#tasks.has(key) || this.#failed.has(key) || this.#recheckAt.has(key)) continue;
      if (this.#tasks.withPrefix(request.type).length < concurrentMax[request.type]) {
        this.#send(key, request);
      }
    }
  }

  /** Sends failed requests again, too. */
  retryFailed(plan: PlanRecord): void {
    this.#failed.clear();
    this.sendPending(plan);
  }

  settle(): Promise<void> {
    return this.#tasks.settle();
  }

  #send(key: string, request: PlanRequest): void {
    const sent = this.#tasks.start(key, () => this.#perform(key, request));
    const next = sent.then(() => {
      // One slot is free for the next request.
      const plan = this.#actor.record;
      if (plan !== undefined) this.sendPending(plan);
    });
    this.#actor.host.waitUntil(next);
  }

  async #perform(key: string, request: PlanRequest): Promise<void> {
    const { host } = this.#actor;
    try {
      const isContinuing = await performRequest(this.#actor, this.ports, request);
      const plan = this.#actor.record;
      if (plan === undefined || !hasPendingRequest(plan, key)) return;
      // A request that is still pending has changed nothing. Sending it again at once would loop.
      if (!isContinuing) this.#failed.add(key);
      else {
        this.#recheckAt.set(key, host.clock() + limits.planPendingRetryMs);
        this.#actor.armAlarm();
      }
    } catch (error) {
      this.#failed.add(key);
      host.log({ plan: this.#actor.record?.name, failed: key, message: messageOf(error) });
    }
  }
}

function pendingRequests(plan: PlanRecord): PlanRequest[] {
  return [...pendingMembershipRequests(plan), ...pendingRunRequests(plan)];
}

function hasPendingRequest(plan: PlanRecord, key: string): boolean {
  return pendingRequests(plan).some((request) => requestKey(request, plan) === key);
}

/** Includes the run's number, because the same request of a later run is another one. */
function requestKey(request: PlanRequest, { run }: PlanRecord): string {
  if (request.type === "unregister") return request.type;
  const isOfRun =
    request.type === "hold" || request.type === "prepare" || request.type === "finish";
  return `${request.type} ${isOfRun ? `${run?.n} ` : ""}${request.sandbox}`;
}
