/**
 * Owns the calls that reach one tenant's Directory, and its alarm. A reader learns nothing about lists here.
 */
import { DurableObject } from "cloudflare:workers";
import type { Env } from "../../config.ts";
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
import type { NewSandbox } from "../sandbox/lifecycle/lifecycle.ts";
import { objectPlace } from "../shared/durable-host.ts";
import type { EventStreams } from "../shared/event-stream.ts";
import type { Place } from "../shared/host.ts";
import type { Answer } from "../shared/result.ts";
import { answer } from "../shared/to-result.ts";
import { DirectoryActor, type FindCall, type Found } from "./actor.ts";
import * as lists from "./list.ts";
import * as plans from "./plans.ts";

export class DirectoryObject extends DurableObject<Env> {
  readonly #place: Place;
  readonly #actor: DirectoryActor;
  readonly #streams: EventStreams;

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    this.#place = objectPlace(state);
    this.#actor = new DirectoryActor(this.#place, (id) => env.SANDBOX.getByName(id));
    this.#streams = lists.streams(this.#place, this.#actor.watchers);
  }

  find(call: FindCall): Promise<Answer<Found>> {
    return answer(() => this.#actor.find(call));
  }

  /** Of a sandbox's own, and of nobody else: waits for nothing. */
  async told(report: Report): Promise<void> {
    this.#actor.told(report);
  }

  list(caller: Caller, query: SandboxesQuery): Promise<Answer<SandboxesPage>> {
    return answer(() => {
      this.#actor.heal();
      return lists.page(this.#place, query, caller.key);
    });
  }

  async counts(): Promise<Answer<Counts>> {
    return { ok: lists.counts(this.#place) };
  }

  async events(query: EventsQuery): Promise<Answer<TenantEvents>> {
    return { ok: lists.events(this.#place, query) };
  }

  followEvents(after: number): Promise<Answer<ReadableStream<Uint8Array>>> {
    return answer(() => this.#streams.follow(after));
  }

  /** Of a plan alone. */
  make(call: NewSandbox): Promise<Answer<null>> {
    return answer(() => this.#actor.make(call));
  }

  putPlan(name: string): Promise<Answer<plans.PlanName>> {
    return answer(() => plans.put(this.#place, name));
  }

  /** When the name was given; undefined: nobody has it. */
  async plan(name: string): Promise<number | undefined> {
    return plans.createdAt(this.#place, name);
  }

  async plans(query: PlansQuery): Promise<Answer<PlansPage>> {
    return { ok: plans.page(this.#place, query) };
  }

  /** Of a plan alone, that is removed. */
  forgetPlan(name: string, createdAt: number): Promise<Answer<null>> {
    return answer(() => {
      plans.forget(this.#place, name, createdAt);
      return null;
    });
  }

  override async alarm(): Promise<void> {
    await this.#actor.alarm();
  }
}
