/**
 * Owns the calls that reach one plan, and its alarm. A reader learns nothing about plans here.
 * The door has found out that there is such a name, and when it was given.
 */
import { DurableObject } from "cloudflare:workers";
import type { Env } from "../../config.ts";
import type { Named } from "../../core/plan/lifetime.ts";
import type { Fate } from "../../core/plan/record.ts";
import { planView } from "../../core/plan/view.ts";
import type { LeaseView } from "../../protocol/lease.ts";
import type { Commit, CommitsPage, Member, Plan } from "../../protocol/plan.ts";
import { rights } from "../../protocol/rights.ts";
import { objectPlace } from "../shared/durable-host.ts";
import type { Answer } from "../shared/result.ts";
import { answer } from "../shared/to-result.ts";
import { PlanActor } from "./actor.ts";
import { page } from "./history.ts";
import * as members from "./members.ts";
import type { MemberPort } from "./ports.ts";
import * as runs from "./runs.ts";

export class PlanObject extends DurableObject<Env> {
  readonly #actor: PlanActor;

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    const place = objectPlace(state);
    this.#actor = new PlanActor(place, {
      memberOf: (sandbox) => memberOf(env, sandbox),
      directoryOf: (tenant) => env.DIRECTORY.getByName(tenant),
    });
  }

  put(named: Named): Promise<Answer<Plan | "again">> {
    return answer(() => members.putPlan(this.#actor, named));
  }

  get(named: Named): Promise<Answer<Plan>> {
    return answer(() => planView(this.#actor.open(named)));
  }

  remove(named: Named, fate: Fate): Promise<Answer<Plan>> {
    return answer(() => members.removePlan(this.#actor, named, fate));
  }

  putMember(named: Named, call: members.PutMember): Promise<Answer<members.MemberPut>> {
    return this.#for(named, () => members.putMember(this.#actor, call));
  }

  removeMember(named: Named, key: string, fate: Fate): Promise<Answer<Member>> {
    return this.#for(named, () => members.removeMember(this.#actor, key, fate));
  }

  run(named: Named, call: runs.RunCall): Promise<Answer<Commit>> {
    return this.#for(named, () => runs.run(this.#actor, call));
  }

  commits(named: Named, before: number | undefined, limit: number): Promise<Answer<CommitsPage>> {
    return this.#for(named, () => page(this.#actor.place, before, limit));
  }

  commitOf(named: Named, n: number, waitMs: number): Promise<Answer<Commit>> {
    return this.#for(named, () => runs.look(this.#actor, n, waitMs));
  }

  override async alarm(): Promise<void> {
    await this.#actor.alarm();
  }

  #for<T>(named: Named, work: () => T | Promise<T>): Promise<Answer<T>> {
    return answer(() => {
      this.#actor.open(named);
      return work();
    });
  }
}

function memberOf(env: Env, sandbox: string): MemberPort {
  const object = env.SANDBOX.getByName(sandbox);
  return {
    isDestroyed: async () => {
      const state = (await object.report())?.view.state;
      return state === undefined || state === "destroying" || state === "destroyed";
    },
    join: (asking, move) => object.joinPlan(asking, move),
    leave: (asking, move) => object.leavePlan(asking, move),
    hold: (asking, waitMs) => object.holdForPlan(asking, waitMs),
    prepare: (asking, kind) => object.prepareForPlan(asking, kind),
    finish: (asking, verdict) => object.finishForPlan(asking, verdict),
    holder: async ({ tenant }) => {
      const answer = await object.leaseState({ tenant, rights });
      return "ok" in answer ? { ok: holderOf(answer.ok) } : answer;
    },
    end: (reason) => object.end(reason),
    endUnheld: ({ tenant }) => object.destroy({ tenant, rights }, { mayWake: false }, false),
  };
}

/** As a gate sees it: who waits comes before whoever has no lease. */
function holderOf({ state, holder, waiters }: LeaseView): { name: string | undefined } | null {
  if (state === "free" && waiters.length === 0) return null;
  return { name: holder ?? waiters[0]?.holder };
}
