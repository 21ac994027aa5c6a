/** Finds or creates sandboxes for one tenant: decides and writes in one synchronous step, and acts only then. */
import { decideFind, mayDecideAgain } from "../../core/directory/find.ts";
import type { Report } from "../../protocol/directory.ts";
import { BerthError, unknownSandbox } from "../../protocol/errors.ts";
import { type Quota, quotaOf } from "../../protocol/fields/quota.ts";
import { type OnExisting, scopeKey } from "../../protocol/fields/scope.ts";
import type { Sandbox } from "../../protocol/sandbox.ts";
import type { LeaseClaim, NewSandbox } from "../sandbox/lifecycle/lifecycle.ts";
import { createMetadata } from "../sandbox/metadata.ts";
import { Alarm } from "../shared/alarm.ts";
import type { ObjectHost } from "../shared/host.ts";
import { type ErrorValue, toBerthError } from "../shared/result.ts";
import { Waiters } from "../shared/waiters.ts";
import { migrate } from "./migrations.ts";
import { applyReport } from "./reports.ts";
import {
  createdSince,
  currentOf,
  deleteForgotten,
  idempotentFindOf,
  insertSandbox,
  keyOfOther,
  liveCount,
  nextTryAt,
  otherIdsOf,
  rememberKey,
  rowOf,
  setScope,
  toKnownSandbox,
} from "./rows.ts";
import { type SandboxPort, SandboxTasks } from "./sandbox-tasks.ts";

export type FindOrCreateCall = {
  /** Describes the sandbox that is created if none is found. */
  make: NewSandbox;
  /** Created together with it, all or none. */
  others?: NewSandbox[];
  onExisting: OnExisting;
  key: string | undefined;
  /** For a replacement: the right to end the present sandbox although its lease may be held. */
  claim?: LeaseClaim;
  /** The digest of the whole call. */
  hash: string;
  /** Why a new sandbox could not be created; the call can still find an existing one. */
  createRefusal?: ErrorValue;
};

/** The sandbox as it was last reported. */
export type Found = { sandbox: Sandbox; made: boolean };

type FindOutcome = {
  id: string;
  made: boolean;
  replaced?: string;
  others?: string[];
  /** Whether this caller decides again if the sandbox is not created after all. */
  decidesAgain: boolean;
};

/** Each round corrects one outdated row. */
const roundsMax = 8;

export class DirectoryActor {
  readonly #host: ObjectHost;
  readonly #quotas: ReadonlyMap<string, Quota>;
  /** Readers that follow the tenant's events. */
  readonly waiters: Waiters;
  readonly #alarm: Alarm;
  readonly #tasks: SandboxTasks;
  readonly #serverStartedAt: number | undefined;

  constructor(
    host: ObjectHost,
    sandboxOf: (id: string) => SandboxPort,
    quotas: ReadonlyMap<string, Quota> = new Map(),
    serverStartedAt?: number,
  ) {
    this.#serverStartedAt = serverStartedAt;
    this.#host = host;
    this.#quotas = quotas;
    this.waiters = new Waiters(host);
    this.#alarm = new Alarm(host);
    this.#tasks = new SandboxTasks(host, sandboxOf, {
      applyReport: (report) => this.#apply(report),
      rearm: () => this.#arm(),
    });
    migrate(host);
    this.#arm();
  }

  async findOrCreate(call: FindOrCreateCall): Promise<Found> {
    // Refused before anything is decided.
    createMetadata(call.make.metadata);
    let confirmed: string | undefined;
    for (let round = 0; round < roundsMax; round++) {
      const outcome = this.#decide(call, confirmed);
      if ("probe" in outcome) {
        confirmed = (await this.#tasks.probe(outcome.probe)) ? outcome.probe : undefined;
        continue;
      }
      const refused = await this.#tasks.ensureMade(outcome.id, call.claim);
      if (refused === undefined) {
        await Promise.all((outcome.others ?? []).map((id) => this.#tasks.ensureMade(id)));
        return this.#toFound(outcome);
      }
      if (!outcome.decidesAgain) throw refused;
      confirmed = undefined;
    }
    throw new BerthError("unavailable", "The scope's sandbox changes too fast. Try again.");
  }

  /** Creates a sandbox for a plan. The plan has chosen the id, which identifies a repeated call, however late. */
  async make(make: NewSandbox): Promise<null> {
    const { id } = make.spec;
    // Refused before anything is decided.
    createMetadata(make.metadata);
    if (rowOf(this.#host, id) === undefined) {
      const now = this.#host.clock();
      this.#refuseBeyondQuota(make, 1, now);
      this.#tasks.forgetRefusal(id);
      deleteForgotten(this.#host, now);
      insertSandbox(this.#host, make, undefined, now);
      this.#arm();
    }
    const refused = await this.#tasks.ensureMade(id);
    if (refused !== undefined) throw refused;
    return null;
  }

  applyReport(report: Report): void {
    this.#apply(report);
    deleteForgotten(this.#host, this.#host.clock());
    this.#arm();
  }

  /** Asks sandboxes whose rows look outdated, in the background. */
  probeStale(): void {
    this.#tasks.probeStale();
  }

  /** Sandboxes that ran when the server ended are asked once, so that lists show them as paused. */
  async untilServerEndNoticed(): Promise<void> {
    if (this.#serverStartedAt !== undefined)
      await this.#tasks.probeRunningSince(this.#serverStartedAt);
  }

  async alarm(): Promise<void> {
    this.#alarm.rang();
    this.#host.log({ object: "directory", why: "alarm" });
    await this.#tasks.alarm();
    this.#arm();
  }

  /** Reads and writes without an `await`, so that no other call can interfere. */
  #decide(call: FindOrCreateCall, confirmed: string | undefined): FindOutcome | { probe: string } {
    const { make, key, hash } = call;
    const { spec } = make;
    const scope = spec.scope === undefined ? undefined : scopeKey(spec.scope);
    const decision = decideFind(
      call,
      idempotentFindOf(this.#host, key),
      toKnownSandbox(currentOf(this.#host, scope)),
      confirmed,
    );
    if ("refuse" in decision) throw decision.refuse;
    if ("probe" in decision) return decision;
    const now = this.#host.clock();
    if ("join" in decision) {
      const { id } = decision.join;
      if (key !== undefined) rememberKey(this.#host, key, hash, id, now);
      const mayEnd = call.claim?.token !== undefined || call.claim?.force !== undefined;
      const joiner = { onExisting: call.onExisting, mayEnd };
      const others = otherIdsOf(this.#host, key, call.others?.length ?? 0);
      return {
        ...{ id, made: false, decidesAgain: mayDecideAgain(joiner, decision.join) },
        ...(others.length > 0 ? { others } : {}),
      };
    }
    if (call.createRefusal !== undefined) throw toBerthError(call.createRefusal);
    deleteForgotten(this.#host, now);
    const { replaces } = decision;
    const others = call.others ?? [];
    this.#refuseBeyondQuota(make, (replaces === undefined ? 1 : 0) + others.length, now);
    // A sandbox without its scope and key could not be found by a repeated call, which would create a second one.
    this.#host.transaction(() => {
      insertSandbox(this.#host, make, replaces, now);
      if (scope !== undefined) setScope(this.#host, scope, spec.id);
      if (key !== undefined) rememberKey(this.#host, key, hash, spec.id, now);
      for (const [index, other] of others.entries()) {
        insertSandbox(this.#host, other, undefined, now);
        if (key !== undefined)
          rememberKey(this.#host, keyOfOther(key, index), hash, other.spec.id, now);
      }
    });
    this.#arm();
    const ids = others.map((other) => other.spec.id);
    const found = {
      ...{ id: spec.id, made: true, decidesAgain: false },
      ...(ids.length > 0 ? { others: ids } : {}),
    };
    return replaces === undefined ? found : { ...found, replaced: replaces };
  }

  #refuseBeyondQuota({ spec }: NewSandbox, added: number, now: number): void {
    const { sandboxes, createsPerMinute } = quotaOf(this.#quotas, spec.tenant);
    if (sandboxes !== undefined && liveCount(this.#host) + added > sandboxes) {
      throw new BerthError(
        "too_many",
        `The tenant has as many sandboxes as it may have: ${sandboxes}.`,
        {
          hint: "Destroy one first. The operator of this installation can raise the quota.",
          facts: { quota: "sandboxes", max: sandboxes },
        },
      );
    }
    if (createsPerMinute === undefined) return;
    const created = createdSince(this.#host, now - 60_000) + Math.max(1, added) - 1;
    if (created >= createsPerMinute) {
      throw new BerthError(
        "too_many",
        `The tenant has created ${createsPerMinute} sandboxes within a minute.`,
        {
          hint: "Try again in a minute. The operator of this installation can raise the quota.",
          facts: { quota: "createsPerMinute", max: createsPerMinute },
        },
      );
    }
  }

  #toFound({ id, made, replaced, others }: FindOutcome): Found {
    const view = rowOf(this.#host, id)?.view;
    if (view === null || view === undefined) throw unknownSandbox();
    const sandbox = JSON.parse(view) as Sandbox;
    const facts = {
      ...(replaced === undefined ? {} : { replaced }),
      ...(others === undefined ? {} : { others }),
    };
    return { made, sandbox: { ...sandbox, ...facts } };
  }

  #apply(report: Report): void {
    // A partly applied report would stay so: when it is repeated, its revision is not new any more.
    const isNews = this.#host.transaction(() => applyReport(this.#host, report));
    if (isNews) this.waiters.wakeAll();
  }

  #arm(): void {
    const dueAt = nextTryAt(this.#host);
    if (dueAt !== undefined) this.#alarm.setBy(dueAt);
  }
}
