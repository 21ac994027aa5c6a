/**
 * Owns find-or-create of one tenant: decided and written in one synchronous step, and only then carried out.
 * Does not own the decision (core/directory), nor speaking to the objects of sandboxes (errands.ts).
 */
import { decide, decidesAnew } from "../../core/directory/find.ts";
import { noMetadata, patchMetadata } from "../../core/metadata/patch.ts";
import type { Report } from "../../protocol/directory.ts";
import { BerthError, unknownSandbox } from "../../protocol/errors.ts";
import { type OnExisting, scopeKey } from "../../protocol/fields/scope.ts";
import type { Sandbox } from "../../protocol/sandbox.ts";
import type { Gate, NewSandbox } from "../sandbox/lifecycle/lifecycle.ts";
import { Alarm } from "../shared/alarm.ts";
import type { Place } from "../shared/host.ts";
import type { Refused } from "../shared/result.ts";
import { asError } from "../shared/to-result.ts";
import { Watchers } from "../shared/waiters.ts";
import { migrate } from "./migrations.ts";
import { take } from "./reports.ts";
import {
  currentOf,
  forgetOld,
  insert,
  keep,
  keyedOf,
  knownOf,
  nextTry,
  pointTo,
  rowOf,
} from "./rows.ts";
import { Errands, type SandboxPort } from "./sandbox-tasks.ts";

export type FindCall = {
  /** As the new sandbox will be, should one be made. */
  make: NewSandbox;
  onExisting: OnExisting;
  key: string | undefined;
  /** Of one that replaces: how it passes the lease of the one that is there. */
  gate?: Gate;
  /** Of the whole call. */
  hash: string;
  /** Why nothing new can be made of it: it finds only what is there. */
  cannot?: Refused;
};

/** The sandbox as it was last told. */
export type Found = { sandbox: Sandbox; made: boolean };

type Settled = {
  id: string;
  made: boolean;
  replaced?: string;
  /** Should it not be made after all: whether this caller looks again. */
  decidesAnew: boolean;
};

/** Each round corrects a row that was behind; more of them than this is a fault. */
const roundsMax = 8;

export class DirectoryActor {
  readonly #place: Place;
  /** Of those who follow what happens. */
  readonly watchers: Watchers;
  readonly #alarm: Alarm;
  readonly #errands: Errands;

  constructor(place: Place, sandboxOf: (id: string) => SandboxPort) {
    this.#place = place;
    this.watchers = new Watchers(place);
    this.#alarm = new Alarm(place);
    this.#errands = new Errands(place, sandboxOf, {
      take: (report) => this.#take(report),
      rearm: () => this.#arm(),
    });
    migrate(place);
    this.#arm();
  }

  async find(call: FindCall): Promise<Found> {
    const metadata = patchMetadata(noMetadata, call.make.metadata, undefined);
    if ("refuse" in metadata) throw metadata.refuse;
    let confirmed: string | undefined;
    for (let round = 0; round < roundsMax; round++) {
      const found = this.#decide(call, confirmed);
      if ("ask" in found) {
        confirmed = (await this.#errands.ask(found.ask)) ? found.ask : undefined;
        continue;
      }
      const refused = await this.#errands.finish(found.id, call.gate);
      if (refused === undefined) return this.#answer(found);
      if (!found.decidesAnew) throw refused;
      confirmed = undefined;
    }
    throw new BerthError("unavailable", "The scope changes hands faster than it can be looked at.");
  }

  /** Of a plan, which has minted the id: the same call is known by that, however late it comes. */
  async make(make: NewSandbox): Promise<null> {
    const { id } = make.spec;
    const metadata = patchMetadata(noMetadata, make.metadata, undefined);
    if ("refuse" in metadata) throw metadata.refuse;
    if (rowOf(this.#place, id) === undefined) {
      const now = this.#place.clock();
      this.#errands.forgive(id);
      forgetOld(this.#place, now);
      insert(this.#place, make, undefined, now);
      this.#arm();
    }
    const refused = await this.#errands.finish(id);
    if (refused !== undefined) throw refused;
    return null;
  }

  told(report: Report): void {
    this.#take(report);
    forgetOld(this.#place, this.#place.clock());
    this.#arm();
  }

  /** What looks old is asked, beside whatever else happens. */
  heal(): void {
    this.#errands.heal();
  }

  async alarm(): Promise<void> {
    this.#alarm.rang();
    this.#place.log({ object: "directory", why: "alarm" });
    await this.#errands.alarm();
    this.#arm();
  }

  /** Looked at and written in one piece: nobody can come between. */
  #decide(call: FindCall, confirmed: string | undefined): Settled | { ask: string } {
    const { make, key, hash } = call;
    const { spec } = make;
    const scope = spec.scope === undefined ? undefined : scopeKey(spec.scope);
    const decision = decide(
      call,
      keyedOf(this.#place, key),
      knownOf(currentOf(this.#place, scope)),
      confirmed,
    );
    if ("refuse" in decision) throw decision.refuse;
    if ("ask" in decision) return decision;
    const now = this.#place.clock();
    if ("join" in decision) {
      const { id } = decision.join;
      if (key !== undefined) keep(this.#place, key, hash, id, now);
      const mayEnd = call.gate?.token !== undefined || call.gate?.force !== undefined;
      const joiner = { onExisting: call.onExisting, mayEnd };
      return { id, made: false, decidesAnew: decidesAnew(joiner, decision.join) };
    }
    if (call.cannot !== undefined) throw asError(call.cannot);
    forgetOld(this.#place, now);
    const { replaces } = decision;
    // One that no scope and no key leads to would be made beside the next.
    this.#place.together(() => {
      insert(this.#place, make, replaces, now);
      if (scope !== undefined) pointTo(this.#place, scope, spec.id);
      if (key !== undefined) keep(this.#place, key, hash, spec.id, now);
    });
    this.#arm();
    const found = { id: spec.id, made: true, decidesAnew: false };
    return replaces === undefined ? found : { ...found, replaced: replaces };
  }

  #answer({ id, made, replaced }: Settled): Found {
    const view = rowOf(this.#place, id)?.view;
    if (view === null || view === undefined) throw unknownSandbox();
    const sandbox = JSON.parse(view) as Sandbox;
    return { made, sandbox: replaced === undefined ? sandbox : { ...sandbox, replaced } };
  }

  #take(report: Report): void {
    // Half of it would stay half: told again, the same revision says nothing new.
    const isNews = this.#place.together(() => take(this.#place, report));
    if (isNews) this.watchers.wakeAll();
  }

  #arm(): void {
    const at = nextTry(this.#place);
    if (at !== undefined) this.#alarm.setBy(at);
  }
}
