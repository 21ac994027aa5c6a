/** The Durable Object of one tenant's Directory: passes calls and the alarm to the actor and the lists. */
import { DurableObject } from "cloudflare:workers";
import { type Env, readConfig } from "../../config.ts";
import type {
  Counts,
  Report,
  SandboxesPage,
  SandboxesQuery,
  TenantEvents,
} from "../../protocol/directory.ts";
import type { EventsQuery } from "../../protocol/event.ts";
import type { PlansPage, PlansQuery } from "../../protocol/plan.ts";
import type { Caller } from "../../protocol/rights.ts";
import { revokedError } from "../sandbox/dispatch/revocation.ts";
import type { NewSandbox } from "../sandbox/lifecycle/lifecycle.ts";
import { sleepOf } from "../shared/beat.ts";
import { forEachAtOnce } from "../shared/concurrency.ts";
import { type DurableHost, durableHost } from "../shared/durable-host.ts";
import type { EventStreams } from "../shared/event-stream.ts";
import { type Result, toResult } from "../shared/result.ts";
import { DirectoryActor, type FindOrCreateCall, type Found } from "./actor.ts";
import * as lists from "./list.ts";
import * as plans from "./plans.ts";

const endKeysAtOnce = 20;

export class DirectoryObject extends DurableObject<Env> {
  readonly #host: DurableHost;
  readonly #actor: DirectoryActor;
  readonly #streams: EventStreams;
  readonly #endedKeys = new Set<string>();

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    this.#host = durableHost(state, {
      sleep: sleepOf(state, env),
      ring: () => this.alarm(),
    });
    const { quotas, serverRun } = readConfig(env);
    const sandboxOf = (id: string) => env.SANDBOX.getByName(id);
    this.#actor = new DirectoryActor(this.#host, sandboxOf, quotas, serverRun?.startedAt);
    this.#streams = lists.eventStreams(this.#host, this.#actor.waiters);
  }

  find(call: FindOrCreateCall): Promise<Result<Found>> {
    return toResult(() => this.#actor.findOrCreate(call));
  }

  /** Called by the tenant's own sandboxes only. */
  async applyReport(report: Report): Promise<void> {
    this.#actor.applyReport(report);
  }

  list(caller: Caller, query: SandboxesQuery): Promise<Result<SandboxesPage>> {
    return toResult(async () => {
      this.#actor.probeStale();
      await this.#actor.untilServerEndNoticed();
      return lists.listPage(this.#host, query, caller.key);
    });
  }

  async counts(): Promise<Result<Counts>> {
    await this.#actor.untilServerEndNoticed();
    return { ok: lists.countByState(this.#host) };
  }

  async events(query: EventsQuery): Promise<Result<TenantEvents>> {
    return { ok: lists.listEvents(this.#host, query) };
  }

  followEvents(after: number, keyId?: string): Promise<Result<ReadableStream<Uint8Array>>> {
    return toResult(() =>
      this.#streams.follow(after, () => {
        if (keyId !== undefined && this.#endedKeys.has(keyId)) throw revokedError();
      }),
    );
  }

  /** Called by the Keys object, until it succeeds: ends what a removed key opened anywhere in the tenant. */
  async endKey(id: string): Promise<void> {
    this.#endedKeys.add(id);
    this.#actor.waiters.wakeAll();
    await forEachAtOnce(lists.liveSandboxes(this.#host), endKeysAtOnce, (sandbox) =>
      this.env.SANDBOX.getByName(sandbox).endKey(id),
    );
  }

  /** Called by plans only. */
  make(call: NewSandbox): Promise<Result<null>> {
    return toResult(() => this.#actor.make(call));
  }

  putPlan(name: string): Promise<Result<plans.PlanName>> {
    return toResult(() => plans.putPlanName(this.#host, name));
  }

  /** When the name was given; undefined if there is no such plan. */
  async plan(name: string): Promise<number | undefined> {
    return plans.planCreatedAt(this.#host, name);
  }

  async plans(query: PlansQuery): Promise<Result<PlansPage>> {
    return { ok: plans.planPage(this.#host, query) };
  }

  /** Called by a removed plan only. */
  forgetPlan(name: string, createdAt: number): Promise<Result<null>> {
    return toResult(() => {
      plans.forgetPlanName(this.#host, name, createdAt);
      return null;
    });
  }

  override async alarm(): Promise<void> {
    this.#host.alarmRang();
    await this.#actor.alarm();
  }
}
