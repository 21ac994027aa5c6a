/**
 * Owns find-or-create of one tenant: decided and written in one synchronous step, carried out until it is done,
 * by whoever waits or by the alarm. Does not own the decision (core/directory) nor how a sandbox is made (its object).
 */
import { decide } from "../../core/directory/find.ts";
import { noMetadata, patchMetadata } from "../../core/metadata/patch.ts";
import type { Report, ReportTaken } from "../../protocol/directory.ts";
import { BerthError, unknownSandbox } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { Sandbox } from "../../protocol/sandbox.ts";
import { type OnExisting, scopeKey } from "../../protocol/scope.ts";
import { Alarm } from "../alarm.ts";
import type { Answer, Refused } from "../answer.ts";
import { asError } from "../answers.ts";
import { inTime } from "../in-time.ts";
import type { Place } from "../place.ts";
import { Refusals } from "../refusals.ts";
import type { NewSandbox } from "../sandbox/lifecycle.ts";
import { Watchers } from "../sandbox/watchers.ts";
import { UnderWay } from "../under-way.ts";
import { stale } from "./list.ts";
import { migrate } from "./migrations.ts";
import { take } from "./reports.ts";
import {
  currentOf,
  due,
  forget,
  forgetOld,
  giveBack,
  insert,
  keep,
  keyedOf,
  knownOf,
  nextTry,
  pointTo,
  rowOf,
  tryAgainLater,
} from "./rows.ts";

/** A sandbox's object, as far as the Directory speaks to it. */
export interface SandboxPort {
  /** Makes it, finds it made, or refuses what cannot be had here. */
  make(call: NewSandbox): Promise<Answer<Report>>;
  /** Undefined: it never was, or was forgotten. */
  report(): Promise<Report | undefined>;
  /** Ends it for good, whoever holds its lease. */
  end(reason: string): Promise<Report | undefined>;
}

export type FindCall = {
  /** As the new sandbox will be, should one be made. */
  make: NewSandbox;
  onExisting: OnExisting;
  key: string | undefined;
  /** Of the whole call. */
  hash: string;
  /** Why nothing new can be made of it: it finds only what is there. */
  cannot?: Refused;
};

/** The sandbox as it was last told. */
export type Found = { sandbox: Sandbox; made: boolean };

type Settled = { id: string; made: boolean; replaced?: string };

/** Each round corrects a row that was behind; more of them than this is a fault. */
const roundsMax = 8;

export class DirectoryActor {
  readonly #place: Place;
  readonly #sandboxOf: (id: string) => SandboxPort;
  readonly #epoch: string;
  /** Of those who follow what happens. */
  readonly watchers: Watchers;
  readonly #underWay: UnderWay;
  readonly #alarm: Alarm;
  /** By their objects. */
  readonly #refusals: Refusals;
  /** The last that was asked because it looked old: the next ones come after it. */
  #healedTo = "";

  constructor(place: Place, sandboxOf: (id: string) => SandboxPort) {
    this.#place = place;
    this.#sandboxOf = sandboxOf;
    this.watchers = new Watchers(place);
    this.#underWay = new UnderWay(place);
    this.#alarm = new Alarm(place);
    this.#refusals = new Refusals(place);
    migrate(place);
    const [known] = place.sql<{ epoch: string }>("SELECT epoch FROM directory");
    this.#epoch = known?.epoch ?? place.draw(16);
    if (known === undefined) {
      place.sql("INSERT INTO directory (one, epoch) VALUES (1, ?)", this.#epoch);
    }
    this.#arm();
  }

  async find(call: FindCall): Promise<Found> {
    const metadata = patchMetadata(noMetadata, call.make.metadata, undefined);
    if ("refuse" in metadata) throw metadata.refuse;
    let confirmed: string | undefined;
    for (let round = 0; round < roundsMax; round++) {
      const found = this.#decide(call, confirmed);
      if ("ask" in found) {
        confirmed = (await this.#ask(found.ask)) ? found.ask : undefined;
        continue;
      }
      await this.#finish(found.id);
      return this.#answer(found);
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
      this.#refusals.forget(id);
      forgetOld(this.#place, now);
      insert(this.#place, make, undefined, now);
      this.#arm();
    }
    await this.#finish(id);
    return null;
  }

  told(report: Report): ReportTaken {
    this.#take(report);
    this.#arm();
    return { epoch: this.#epoch };
  }

  /** What looks old is asked, beside whatever else happens. */
  heal(): void {
    const room = limits.healAtOnceMax - this.#underWay.of("ask ").length;
    if (room <= 0) return;
    for (const id of stale(this.#place, this.#place.clock(), this.#healedTo, room)) {
      this.#healedTo = id;
      this.#begin(`ask ${id}`, async () => {
        await this.#ask(id);
      });
    }
  }

  async alarm(): Promise<void> {
    this.#alarm.rang();
    for (const id of due(this.#place, this.#place.clock())) this.#carryOut(id);
    await this.#underWay.settled();
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
      if (key !== undefined) keep(this.#place, key, hash, decision.join, now);
      return { id: decision.join, made: false };
    }
    if (call.cannot !== undefined) throw asError(call.cannot);
    forgetOld(this.#place, now);
    const { replaces } = decision;
    insert(this.#place, make, replaces, now);
    if (scope !== undefined) pointTo(this.#place, scope, spec.id);
    if (key !== undefined) keep(this.#place, key, hash, spec.id, now);
    this.#arm();
    return { id: spec.id, made: true, ...(replaces === undefined ? {} : { replaced: replaces }) };
  }

  #answer({ id, made, replaced }: Settled): Found {
    const view = rowOf(this.#place, id)?.view;
    if (view === null || view === undefined) throw unknownSandbox();
    const sandbox = JSON.parse(view) as Sandbox;
    return { made, sandbox: replaced === undefined ? sandbox : { ...sandbox, replaced } };
  }

  /** Answers when its object has it; what keeps it from that is tried again by the alarm. */
  async #finish(id: string): Promise<void> {
    if (rowOf(this.#place, id)?.phase !== "creating") return;
    await this.#carryOut(id);
    const refused = this.#refusals.of(id);
    if (refused !== undefined) throw asError(refused);
    if (rowOf(this.#place, id)?.phase !== "creating") return;
    throw new BerthError("unavailable", "The sandbox is decided on but not yet made.", {
      hint: "Ask again with the same scope or Idempotency-Key: it is the same one.",
      facts: { sandbox: id },
    });
  }

  /** True: it lives. Its row is as it says then. */
  async #ask(id: string): Promise<boolean> {
    const report = await this.#inTime(this.#sandboxOf(id).report(), limits.directoryAskMs);
    if (report === undefined) forget(this.#place, id);
    else this.#take(report);
    return knownOf(rowOf(this.#place, id))?.over === false;
  }

  /** Never rejects. */
  #carryOut(id: string): Promise<void> {
    const due = rowOf(this.#place, id);
    if (due !== undefined) tryAgainLater(this.#place, due, this.#place.clock());
    return this.#begin(id, async () => {
      const row = rowOf(this.#place, id);
      if (row === undefined) return;
      await this.#place.durable();
      if (row.phase === "creating") await this.#make(id, JSON.parse(row.call ?? "") as NewSandbox);
      if (rowOf(this.#place, id)?.ending === 1) await this.#end(id);
    });
  }

  async #make(id: string, call: NewSandbox): Promise<void> {
    const made = await this.#inTime(this.#sandboxOf(id).make(call), limits.directoryAskMs);
    const row = rowOf(this.#place, id);
    if (row === undefined) return;
    if ("ok" in made) {
      this.#take(made.ok);
      if (row.replaces !== null) this.#carryOut(row.replaces);
      return;
    }
    // It never was: whoever waits is told why, who comes later decides anew, and nobody is replaced.
    this.#refusals.keep(id, made.refused);
    forget(this.#place, id);
    giveBack(this.#place, row);
  }

  async #end(id: string): Promise<void> {
    const waitMs = limits.waitMaxMs + limits.directoryAskMs;
    const report = await this.#inTime(this.#sandboxOf(id).end("replaced"), waitMs);
    if (report === undefined) forget(this.#place, id);
    else this.#take(report);
  }

  #take(report: Report): void {
    if (take(this.#place, report)) this.watchers.wakeAll();
  }

  /** What comes later is not waited for: it is asked again, or says so by itself. */
  async #inTime<T>(answer: Promise<T>, waitMs: number): Promise<T> {
    try {
      return await inTime(this.#place, answer, waitMs);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw new BerthError("unavailable", `The sandbox cannot be asked: ${message}`, {
        hint: "Try again in a moment.",
      });
    }
  }

  #begin(key: string, work: () => Promise<void>): Promise<void> {
    return this.#underWay.begin(key, () =>
      work()
        .catch((error: unknown) => this.#failed(key, error))
        .finally(() => this.#arm()),
    );
  }

  #failed(key: string, error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.#place.log({ sandbox: key, failed: "directory", message });
  }

  #arm(): void {
    const at = nextTry(this.#place);
    if (at !== undefined) this.#alarm.setBy(at);
  }
}
