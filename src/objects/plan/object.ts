/** The Durable Object of one plan. The Worker has looked the plan's name up in the Directory before it calls. */
import { DurableObject } from "cloudflare:workers";
import type { Env } from "../../config.ts";
import type { PlanIdentity } from "../../core/plan/membership.ts";
import type { Disposition } from "../../core/plan/record.ts";
import { planView } from "../../core/plan/view.ts";
import type { LeaseView } from "../../protocol/lease.ts";
import type { Commit, CommitsPage, Member, Plan } from "../../protocol/plan.ts";
import { rights } from "../../protocol/rights.ts";
import type { VerbCalls } from "../sandbox/dispatch/verb-call.ts";
import { sleepOf } from "../shared/beat.ts";
import { type DurableHost, durableHost } from "../shared/durable-host.ts";
import { type Result, toResult } from "../shared/result.ts";
import { PlanActor } from "./actor.ts";
import { commitsPage } from "./history.ts";
import * as members from "./members.ts";
import type { ParticipantPort } from "./ports.ts";
import * as runs from "./runs.ts";

export class PlanObject extends DurableObject<Env> {
  readonly #host: DurableHost;
  readonly #actor: PlanActor;

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    this.#host = durableHost(state, {
      sleep: sleepOf(state, env),
      ring: () => this.alarm(),
    });
    this.#actor = new PlanActor(this.#host, {
      participantOf: (sandbox) => participantOf(env, sandbox),
      directoryOf: (tenant) => env.DIRECTORY.getByName(tenant),
    });
  }

  put(identity: PlanIdentity): Promise<Result<Plan | "again">> {
    return toResult(() => members.putPlan(this.#actor, identity));
  }

  get(identity: PlanIdentity): Promise<Result<Plan>> {
    return toResult(() => planView(this.#actor.open(identity)));
  }

  remove(identity: PlanIdentity, disposition: Disposition): Promise<Result<Plan>> {
    return toResult(() => members.removePlan(this.#actor, identity, disposition));
  }

  putMember(
    identity: PlanIdentity,
    call: members.PutMemberCall,
  ): Promise<Result<members.PutMemberResult>> {
    return this.#withPlan(identity, () => members.putMember(this.#actor, call));
  }

  removeMember(
    identity: PlanIdentity,
    key: string,
    disposition: Disposition,
  ): Promise<Result<Member>> {
    return this.#withPlan(identity, () => members.removeMember(this.#actor, key, disposition));
  }

  run(identity: PlanIdentity, call: runs.RunCall): Promise<Result<Commit>> {
    return this.#withPlan(identity, () => runs.commitOrRollBack(this.#actor, call));
  }

  commits(
    identity: PlanIdentity,
    before: number | undefined,
    limit: number,
  ): Promise<Result<CommitsPage>> {
    return this.#withPlan(identity, () => commitsPage(this.#actor.host, before, limit));
  }

  commitOf(identity: PlanIdentity, n: number, waitMs: number): Promise<Result<Commit>> {
    return this.#withPlan(identity, () => runs.waitForCommit(this.#actor, n, waitMs));
  }

  override async alarm(): Promise<void> {
    this.#host.alarmRang();
    await this.#actor.alarm();
  }

  #withPlan<T>(identity: PlanIdentity, work: () => T | Promise<T>): Promise<Result<T>> {
    return toResult(() => {
      this.#actor.open(identity);
      return work();
    });
  }
}

function participantOf(env: Env, sandbox: string): ParticipantPort {
  const object = env.SANDBOX.getByName(sandbox);
  const verbs = object as unknown as VerbCalls;
  return {
    isDestroyed: async () => {
      const state = (await object.report())?.view.state;
      return state === undefined || state === "destroying" || state === "destroyed";
    },
    join: (caller, membershipRevision) => object.joinPlan(caller, membershipRevision),
    leave: (caller, membershipRevision) => object.leavePlan(caller, membershipRevision),
    hold: (caller, waitMs) => object.holdForPlan(caller, waitMs),
    prepare: (caller, kind) => object.prepareForPlan(caller, kind),
    finish: (caller, decision) => object.finishForPlan(caller, decision),
    holder: async ({ tenant }) => {
      const result = await verbs.callVerb("getLease", { tenant, rights }, {}, "plan");
      return "ok" in result ? { ok: holderOf(result.ok) } : result;
    },
    end: (reason) => object.end(reason),
    endUnheld: ({ tenant }) => {
      const args = { gated: { mayWake: false }, query: { force: false } };
      return verbs.callVerb("destroySandbox", { tenant, rights }, args, "plan");
    },
  };
}

/** The first waiter counts as the holder, because it comes before every call without a lease. */
function holderOf({ state, holder, waiters }: LeaseView): { name: string | undefined } | null {
  if (state === "free" && waiters.length === 0) return null;
  return { name: holder ?? waiters[0]?.holder };
}
