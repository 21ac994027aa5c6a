/**
 * Owns what the Directory says to the objects of sandboxes: give way, make it, how are you. What is decided is carried
 * out until it is done, by whoever waits or by the alarm. Does not own decisions (actor.ts), nor what a report changes
 * (reports.ts).
 */
import type { Report } from "../../protocol/directory.ts";
import { asBerthError, BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { Gate, NewSandbox, Successor } from "../sandbox/lifecycle/lifecycle.ts";
import { UnderWay } from "../shared/background.ts";
import type { Place } from "../shared/host.ts";
import { Refusals } from "../shared/recent-refusals.ts";
import { type Answer, type Refused, refused } from "../shared/result.ts";
import { inTime } from "../shared/timeout.ts";
import { asError } from "../shared/to-result.ts";
import { stale } from "./list.ts";
import { due, forget, giveBack, knownOf, type Row, rowOf, tryAgainLater } from "./rows.ts";

/** A sandbox's object, as far as the Directory speaks to it. */
export interface SandboxPort {
  /** Makes it, finds it made, or refuses what cannot be had here. */
  make(call: NewSandbox): Promise<Answer<Report>>;
  /** Undefined: it never was, or was forgotten. */
  report(): Promise<Report | undefined>;
  /** Ends it for good, unless somebody else holds its lease. Undefined: there is nobody who could stand in the way. */
  giveWay(to: Successor, gate: Gate): Promise<Answer<Report> | undefined>;
}

/** Who hears what came of an errand. */
type Sender = {
  take(report: Report): void;
  /** One is over: another deadline may be the next. */
  rearm(): void;
};

export class Errands {
  readonly #place: Place;
  readonly #sandboxOf: (id: string) => SandboxPort;
  readonly #sender: Sender;
  readonly #underWay: UnderWay;
  readonly #refusals: Refusals;
  /** The last that was asked because it looked old: the next ones come after it. */
  #healedTo = "";

  constructor(place: Place, sandboxOf: (id: string) => SandboxPort, sender: Sender) {
    this.#place = place;
    this.#sandboxOf = sandboxOf;
    this.#sender = sender;
    this.#underWay = new UnderWay(place);
    this.#refusals = new Refusals(place);
  }

  /** Answers when its object has it, or why it never will; what keeps it from that is tried again by the alarm. */
  async finish(id: string, gate?: Gate): Promise<BerthError | undefined> {
    if (rowOf(this.#place, id)?.phase !== "creating") return undefined;
    await this.#carryOut(id, gate);
    const refused = this.#refusals.of(id);
    if (refused !== undefined) return asError(refused);
    if (rowOf(this.#place, id)?.phase !== "creating") return undefined;
    throw new BerthError("unavailable", "The sandbox is decided on but not yet made.", {
      hint: "Ask again with the same scope or Idempotency-Key: it is the same one.",
      facts: { sandbox: id },
    });
  }

  /** True: it lives. Its row is as it says then. */
  async ask(id: string): Promise<boolean> {
    const report = await this.#inTime(this.#sandboxOf(id).report(), limits.directoryAskMs);
    if (report === undefined) forget(this.#place, id);
    else this.#sender.take(report);
    return knownOf(rowOf(this.#place, id))?.over === false;
  }

  /** What looks old is asked, beside whatever else happens. */
  heal(): void {
    const room = limits.healAtOnceMax - this.#underWay.of("ask ").length;
    if (room <= 0) return;
    for (const id of stale(this.#place, this.#place.clock(), this.#healedTo, room)) {
      this.#healedTo = id;
      void this.#begin(`ask ${id}`, async () => {
        await this.ask(id);
      });
    }
  }

  /** Whoever asks anew is told anew. */
  forgive(id: string): void {
    this.#refusals.forget(id);
  }

  /** For the alarm: answers when what is due is done, or goes on for longer than that waits. */
  async alarm(): Promise<void> {
    for (const id of due(this.#place, this.#place.clock())) void this.#carryOut(id);
    await this.#underWay.settled();
  }

  /** Never rejects. */
  #carryOut(id: string, gate: Gate = {}): Promise<void> {
    const row = rowOf(this.#place, id);
    if (row !== undefined) tryAgainLater(this.#place, row, this.#place.clock());
    return this.#begin(id, async () => {
      const row = rowOf(this.#place, id);
      if (row?.phase !== "creating") return;
      await this.#place.durable();
      const call = JSON.parse(row.call ?? "") as NewSandbox;
      const kept = await this.#kept(row, call, gate);
      if (kept === undefined) await this.#make(id, call);
      else this.#giveUp(id, kept);
    });
  }

  /**
   * Why the one that is to be replaced is there still. One that cannot be asked is not asked again by the alarm, long
   * after its caller was told so: should it have given way unheard, the next who asks for the scope finds it dead.
   */
  async #kept({ replaces }: Row, { spec }: NewSandbox, gate: Gate): Promise<Refused | undefined> {
    if (replaces === null || knownOf(rowOf(this.#place, replaces))?.over !== false)
      return undefined;
    try {
      const asked = this.#sandboxOf(replaces).giveWay({ network: spec.network }, gate);
      const answered = await this.#inTime(asked, limits.directoryAskMs);
      if (answered !== undefined && "refused" in answered) return answered.refused;
      if (answered === undefined) forget(this.#place, replaces);
      else this.#sender.take(answered.ok);
    } catch (error) {
      const known = asBerthError(error);
      if (known === undefined) throw error;
      return refused(known).refused;
    }
    // Its end first, for good: a stop in between leaves a dead one, which the next who asks replaces.
    await this.#place.durable();
    return undefined;
  }

  async #make(id: string, call: NewSandbox): Promise<void> {
    const made = await this.#inTime(this.#sandboxOf(id).make(call), limits.directoryAskMs);
    if ("ok" in made) this.#sender.take(made.ok);
    else this.#giveUp(id, made.refused);
  }

  /** It never was: whoever waits is told why, who comes later decides anew, and nobody is replaced. */
  #giveUp(id: string, why: Refused): void {
    const row = rowOf(this.#place, id);
    if (row === undefined) return;
    this.#refusals.keep(id, why);
    this.#place.together(() => {
      forget(this.#place, id);
      giveBack(this.#place, row);
    });
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
        .finally(() => this.#sender.rearm()),
    );
  }

  #failed(key: string, error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.#place.log({ sandbox: key, failed: "directory", message });
  }
}
