/**
 * Owns telling the Directory: each change of what lists show raises the revision in the same commit, and one loop at a
 * time tells the newest until it is taken. Does not own the rows of lists: the Directory has them.
 */

import type { Deadline } from "../../../core/deadline.ts";
import { view } from "../../../core/sandbox/view.ts";
import type { Report } from "../../../protocol/directory.ts";
import { limits } from "../../../protocol/limits.ts";
import { inTime } from "../../shared/timeout.ts";
import type { SandboxActor } from "../actor.ts";
import { listedEvents } from "../event-log.ts";
import type { Facts } from "../store.ts";

type Row = { revision: number; told: number; event_seq: number };

export class Listing {
  readonly #actor: SandboxActor;
  #row: Row | undefined;
  #isTelling = false;
  #tries = 0;
  #tryAt = 0;
  readonly #waiting = new Set<() => void>();

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  /** Within the commit that changed it. The first of all counts as a change. */
  changed(before: Facts | undefined, after: Facts): void {
    if (before !== undefined && !differs(before, after)) return;
    const row = this.#known;
    this.#save({ ...row, revision: row.revision + 1 });
    // One that is on its way has its time: an alarm before that would find nothing to do, and ring again at once.
    if (this.#isTelling) return;
    this.#tryAt = this.#actor.host.clock() + limits.tellAgainMs;
  }

  /** After the commit, and on a fresh wake. */
  tell(): void {
    if (this.#actor.known === undefined) return;
    const { revision, told } = this.#known;
    if (revision === told || this.#isTelling) return;
    this.#isTelling = true;
    this.#actor.host.background(this.#tell());
  }

  /** While something is untold: when it is tried again, should this instance not live to do so. */
  deadline(): Deadline | undefined {
    const { revision, told } = this.#known;
    if (revision === told) return undefined;
    // While it is on its way the alarm has nothing to do for it, also where the clock has stepped over its time.
    const notBefore = this.#isTelling ? this.#actor.host.clock() + limits.tellAgainMs : 0;
    return { at: Math.max(this.#tryAt, notBefore), why: "tell the directory" };
  }

  /** Whether lists show what is true now; waits for it as long as a caller is expected to. */
  async isListed(): Promise<boolean> {
    const { revision } = this.#known;
    const until = this.#actor.host.clock() + limits.listedWaitMs;
    while (this.#known.told < revision) {
      const left = until - this.#actor.host.clock();
      if (left <= 0) return false;
      await new Promise<void>((resolve) => {
        const done = () => {
          cancel();
          this.#waiting.delete(done);
          resolve();
        };
        const cancel = this.#actor.host.timer(left, done);
        this.#waiting.add(done);
      });
    }
    return true;
  }

  report(): Report {
    const { sandbox, metadata, lease, seat } = this.#actor.facts;
    const { lease: _lease, ...shown } = view(sandbox, metadata, lease, seat?.plan);
    const { revision, event_seq } = this.#known;
    return {
      tenant: sandbox.spec.tenant,
      revision,
      asOf: this.#actor.now(),
      view: shown,
      events: listedEvents(this.#actor.host, event_seq, limits.reportEventsMax),
    };
  }

  /** One at a time, always the newest; what changes meanwhile is told by the next round. */
  async #tell(): Promise<void> {
    let more = false;
    try {
      while (this.#actor.known !== undefined && (more || this.#known.told < this.#known.revision)) {
        const report = this.report();
        // While it is on its way no alarm has to ring for it, nor while its time is just over.
        this.#tryAt = this.#actor.host.clock() + limits.directoryAskMs + limits.tellAgainMs;
        try {
          // One that is not answered is told again: it may have been taken, which does no harm.
          await inTime(this.#actor.host, this.#actor.host.tell(report));
          if (this.#actor.known === undefined) return;
          this.#taken(report);
          more = report.events.length === limits.reportEventsMax;
        } catch (error) {
          const message = error instanceof Error ? error.message : String(error);
          this.#actor.host.log({ sandbox: report.view.id, failed: "tell the directory", message });
          return this.#later();
        }
      }
    } finally {
      // In the step that saw nothing untold: what changes in the next one is for another loop.
      this.#isTelling = false;
    }
  }

  #taken(report: Report): void {
    this.#tries = 0;
    const row = this.#known;
    const event_seq = report.events.at(-1)?.seq ?? row.event_seq;
    const told = { ...row, told: report.revision, event_seq };
    // What has changed meanwhile is told next, and that is written down: who forgets this one tells it again.
    if (report.revision < row.revision) this.#row = told;
    else {
      this.#save(told);
      this.#actor.listed();
    }
    for (const done of [...this.#waiting]) done();
  }

  #later(): void {
    const waitMs = Math.min(limits.tellAgainMs * 2 ** this.#tries, limits.tellAgainMaxMs);
    this.#tries++;
    this.#tryAt = this.#actor.host.clock() + waitMs;
    this.#actor.rearm();
  }

  get #known(): Row {
    this.#row ??= this.#actor.host.sql<Row>("SELECT * FROM listing")[0];
    return this.#row ?? { revision: 0, told: 0, event_seq: 0 };
  }

  #save(row: Row): void {
    this.#actor.host.sql(
      "INSERT OR REPLACE INTO listing (one, revision, told, event_seq) VALUES (1, ?, ?, ?)",
      row.revision,
      row.told,
      row.event_seq,
    );
    // Not before: a change that could not be written has no revision.
    this.#row = row;
  }
}

function differs(before: Facts, after: Facts): boolean {
  const [was, is] = [before.sandbox.state, after.sandbox.state];
  const noted = was.name === "running" && is.name === "running" && was.life === is.life;
  const isMoved = before.seat?.plan !== after.seat?.plan;
  return before.metadata !== after.metadata || isMoved || (was !== is && !noted);
}
