/**
 * Owns what the Directory says to the objects of sandboxes: make it, end it, how are you. What is decided is carried out
 * until it is done, by whoever waits or by the alarm. Does not own decisions (actor.ts), nor what a report changes (reports.ts).
 */
import type { Report } from "../../protocol/directory.ts";
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { Answer } from "../answer.ts";
import { asError } from "../answers.ts";
import { inTime } from "../in-time.ts";
import type { Place } from "../place.ts";
import { Refusals } from "../refusals.ts";
import type { NewSandbox } from "../sandbox/lifecycle.ts";
import { UnderWay } from "../under-way.ts";
import { stale } from "./list.ts";
import { due, forget, giveBack, knownOf, rowOf, tryAgainLater } from "./rows.ts";

/** A sandbox's object, as far as the Directory speaks to it. */
export interface SandboxPort {
  /** Makes it, finds it made, or refuses what cannot be had here. */
  make(call: NewSandbox): Promise<Answer<Report>>;
  /** Undefined: it never was, or was forgotten. */
  report(): Promise<Report | undefined>;
  /** Ends it for good, whoever holds its lease. */
  end(reason: string): Promise<Report | undefined>;
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

  /** Answers when its object has it; what keeps it from that is tried again by the alarm. */
  async finish(id: string): Promise<void> {
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
  #carryOut(id: string): Promise<void> {
    const row = rowOf(this.#place, id);
    if (row !== undefined) tryAgainLater(this.#place, row, this.#place.clock());
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
      this.#sender.take(made.ok);
      if (row.replaces !== null) void this.#carryOut(row.replaces);
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
    else this.#sender.take(report);
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
