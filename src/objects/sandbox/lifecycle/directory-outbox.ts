/**
 * Reports a sandbox to its Directory as a transactional outbox: each change that lists show raises the revision in
 * the same commit, and one loop at a time reports the newest until the Directory has it.
 */
import type { Deadline } from "../../../core/deadline.ts";
import { viewSandbox } from "../../../core/sandbox/view.ts";
import type { Report } from "../../../protocol/directory.ts";
import { limits } from "../../../protocol/limits.ts";
import { replaceInto } from "../../shared/columns.ts";
import { messageOf } from "../../shared/result.ts";
import { withTimeout } from "../../shared/timeout.ts";
import { Waiters } from "../../shared/waiters.ts";
import type { SandboxActor } from "../actor.ts";
import { readTenantEvents } from "../events.ts";
import type { Facts } from "../store.ts";

type OutboxRow = { revision: number; reported: number; event_seq: number };

export class DirectoryOutbox {
  readonly #actor: SandboxActor;
  #row: OutboxRow | undefined;
  #isReporting = false;
  #tries = 0;
  #retryAt = 0;
  readonly #waiters: Waiters;

  constructor(actor: SandboxActor) {
    this.#actor = actor;
    this.#waiters = new Waiters(actor.host);
  }

  /** Call within the commit of the change. The creation counts as a change. */
  recordChange(before: Facts | undefined, after: Facts): void {
    if (before !== undefined && !differs(before, after)) return;
    const row = this.#current;
    this.#save({ ...row, revision: row.revision + 1 });
    // A report in progress has its own time limit; an earlier alarm would find nothing to do.
    if (this.#isReporting) return;
    this.#retryAt = this.#actor.host.clock() + limits.reportRetryMs;
  }

  /** Call after the commit, and when an instance wakes up. */
  flush(): void {
    if (this.#actor.existing === undefined) return;
    const { revision, reported } = this.#current;
    if (revision === reported || this.#isReporting) return;
    this.#isReporting = true;
    this.#actor.host.waitUntil(this.#reportUntilDelivered());
  }

  /** When to report again, should this instance not live to do so. */
  deadline(): Deadline | undefined {
    const { revision, reported } = this.#current;
    if (revision === reported) return undefined;
    // During a report the alarm has nothing to do, even if the clock was set forward.
    const notBefore = this.#isReporting ? this.#actor.host.clock() + limits.reportRetryMs : 0;
    return { at: Math.max(this.#retryAt, notBefore), why: "directory report" };
  }

  /** Whether the Directory lists the current state; waits for that as long as a caller can expect. */
  async waitUntilListed(): Promise<boolean> {
    const { revision } = this.#current;
    const until = this.#actor.host.clock() + limits.listedWaitMs;
    while (this.#current.reported < revision) {
      const isDelivered = await this.#waiters.waitForChange(until - this.#actor.host.clock());
      if (!isDelivered) return false;
    }
    return true;
  }

  report(): Report {
    const { sandbox, metadata, lease, participant } = this.#actor.facts;
    const { lease: _lease, ...shown } = viewSandbox(sandbox, metadata, lease, participant?.plan);
    const { revision, event_seq } = this.#current;
    return {
      tenant: sandbox.spec.tenant,
      revision,
      asOf: this.#actor.now(),
      view: shown,
      events: readTenantEvents(this.#actor.host, event_seq, limits.reportEventsMax),
    };
  }

  /** Reports the newest revision, one report at a time; a change in the meantime needs another round. */
  async #reportUntilDelivered(): Promise<void> {
    let hasMore = false;
    try {
      while (
        this.#actor.existing !== undefined &&
        (hasMore || this.#current.reported < this.#current.revision)
      ) {
        const report = this.report();
        // No alarm needs to ring during the report, nor shortly after its limit.
        this.#retryAt = this.#actor.host.clock() + limits.directoryRequestMs + limits.reportRetryMs;
        try {
          // A report without a response is repeated: the Directory may have stored it, which does no harm.
          await withTimeout(this.#actor.host, this.#actor.host.sendReport(report));
          if (this.#actor.existing === undefined) return;
          this.#onDelivered(report);
          hasMore = report.events.length === limits.reportEventsMax;
        } catch (error) {
          const failed = { sandbox: report.view.id, failed: "report to the directory" };
          this.#actor.host.log({ ...failed, message: messageOf(error) });
          return this.#scheduleRetry();
        }
      }
    } finally {
      // In the same step that saw nothing to report: the next change starts another loop.
      this.#isReporting = false;
    }
  }

  #onDelivered(report: Report): void {
    this.#tries = 0;
    const row = this.#current;
    const event_seq = report.events.at(-1)?.seq ?? row.event_seq;
    const delivered = { ...row, reported: report.revision, event_seq };
    // A change in the meantime is reported next and is already written down, so this row need not be.
    if (report.revision < row.revision) this.#row = delivered;
    else {
      this.#save(delivered);
      this.#actor.onListed();
    }
    this.#waiters.wakeAll();
  }

  #scheduleRetry(): void {
    const waitMs = Math.min(limits.reportRetryMs * 2 ** this.#tries, limits.reportRetryMaxMs);
    this.#tries++;
    this.#retryAt = this.#actor.host.clock() + waitMs;
    this.#actor.armAlarm();
  }

  get #current(): OutboxRow {
    this.#row ??= this.#actor.host.sql<OutboxRow>(
      "SELECT revision, told AS reported, event_seq FROM listing",
    )[0];
    return this.#row ?? { revision: 0, reported: 0, event_seq: 0 };
  }

  #save(row: OutboxRow): void {
    const { reported, ...columns } = row;
    replaceInto(this.#actor.host, "listing", { one: 1, ...columns, told: reported });
    // Only now: a change that could not be written has no revision.
    this.#row = row;
  }
}

function differs(before: Facts, after: Facts): boolean {
  const [was, is] = [before.sandbox.state, after.sandbox.state];
  const isOnlyActivity =
    was.name === "running" &&
    is.name === "running" &&
    was.life === is.life &&
    was.endsAt === is.endsAt;
  const hasPlanChanged = before.participant?.plan !== after.participant?.plan;
  if (before.sandbox.spec !== after.sandbox.spec) return true;
  return before.metadata !== after.metadata || hasPlanChanged || (was !== is && !isOnlyActivity);
}
