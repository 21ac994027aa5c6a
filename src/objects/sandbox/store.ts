/** Loads and saves the rows of one sandbox. A save compares by identity, so unchanged parts cost no write. */
import type { EndedLease, Lease, Waiter } from "../../core/lease/lease.ts";
import type { VersionedMetadata } from "../../core/metadata/patch.ts";
import type { Participant } from "../../core/plan/participant/participant.ts";
import type { SandboxRecord } from "../../core/sandbox/record.ts";
import { insertInto, saveList } from "../shared/columns.ts";
import { newestAt } from "./events.ts";
import type { Host } from "./host.ts";
import { migrate, storedVersion } from "./migrations.ts";
import { loadParticipant, saveParticipant } from "./plan/participant-rows.ts";

export type Facts = {
  sandbox: SandboxRecord;
  lease: Lease;
  metadata: VersionedMetadata;
  /** Tokens of an earlier generation are invalid. */
  tokenGeneration: number;
  /** The incarnation whose agent does not know yet that tokens were revoked. */
  revoking: string | null;
  /** The plan participant's state; null if the sandbox is in no plan. */
  participant: Participant | null;
};

type SandboxRow = {
  spec: string;
  state: string;
  restarts: string;
  out_of_memory: string;
  restored_at: number | null;
  token_generation: number;
  revoking: string | null;
  at: number;
};
type LeaseRow = { state: string; fence: number; next_seq: number; at: number };
type MetadataRow = { map: string; version: number; at: number };

/** Undefined for an id that was never created. `clock` is the newest time of any commit. */
export function load(host: Host): { facts: Facts; clock: number } | undefined {
  if (storedVersion(host) === 0) return undefined;
  migrate(host);
  const sandbox = host.sql<SandboxRow>("SELECT * FROM sandbox")[0];
  const lease = host.sql<LeaseRow>("SELECT * FROM lease")[0];
  const metadata = host.sql<MetadataRow>("SELECT * FROM metadata")[0];
  if (sandbox === undefined || lease === undefined || metadata === undefined) return undefined;
  const waiters = host.sql<{ body: string }>("SELECT body FROM waiter ORDER BY seq");
  const facts: Facts = {
    sandbox: {
      spec: JSON.parse(sandbox.spec),
      state: JSON.parse(sandbox.state),
      restarts: JSON.parse(sandbox.restarts),
      outOfMemory: JSON.parse(sandbox.out_of_memory),
      ...(sandbox.restored_at === null ? {} : { restoredAt: sandbox.restored_at }),
    },
    lease: {
      state: JSON.parse(lease.state),
      fence: lease.fence,
      nextSeq: lease.next_seq,
      waiters: waiters.map(({ body }) => JSON.parse(body) as Waiter),
      ended: host.sql<EndedLease>("SELECT token, ticket, reason, at FROM ended ORDER BY at, rowid"),
    },
    metadata: { map: JSON.parse(metadata.map), version: metadata.version },
    tokenGeneration: sandbox.token_generation,
    revoking: sandbox.revoking,
    participant: loadParticipant(host),
  };
  return { facts, clock: Math.max(sandbox.at, lease.at, metadata.at, newestAt(host)) };
}

export function create(host: Host, facts: Facts, now: number): void {
  migrate(host);
  const { sandbox, lease, metadata } = facts;
  insertInto(host, "sandbox", {
    one: 1,
    spec: JSON.stringify(sandbox.spec),
    state: JSON.stringify(sandbox.state),
    restarts: JSON.stringify(sandbox.restarts),
    out_of_memory: JSON.stringify(sandbox.outOfMemory),
    restored_at: sandbox.restoredAt ?? null,
    token_generation: facts.tokenGeneration,
    revoking: facts.revoking,
    at: now,
  });
  const { state, fence, nextSeq: next_seq } = lease;
  insertInto(host, "lease", { one: 1, state: JSON.stringify(state), fence, next_seq, at: now });
  const { map, version } = metadata;
  insertInto(host, "metadata", { one: 1, map: JSON.stringify(map), version, at: now });
}

export function save(host: Host, before: Facts, after: Facts, now: number): void {
  const { spec } = after.sandbox;
  if (spec !== before.sandbox.spec) host.sql("UPDATE sandbox SET spec = ?", JSON.stringify(spec));
  const isSame =
    after.sandbox === before.sandbox &&
    after.tokenGeneration === before.tokenGeneration &&
    after.revoking === before.revoking;
  if (!isSame) {
    host.sql(
      "UPDATE sandbox SET state = ?, restarts = ?, out_of_memory = ?, restored_at = ?, token_generation = ?, revoking = ?, at = ?",
      JSON.stringify(after.sandbox.state),
      JSON.stringify(after.sandbox.restarts),
      JSON.stringify(after.sandbox.outOfMemory),
      after.sandbox.restoredAt ?? null,
      after.tokenGeneration,
      after.revoking,
      now,
    );
  }
  if (after.lease !== before.lease) saveLease(host, before.lease, after.lease, now);
  if (after.participant !== before.participant) saveParticipant(host, after.participant);
  if (after.metadata !== before.metadata) {
    host.sql(
      "UPDATE metadata SET map = ?, version = ?, at = ?",
      JSON.stringify(after.metadata.map),
      after.metadata.version,
      now,
    );
  }
}

function saveLease(host: Host, before: Lease, after: Lease, now: number): void {
  const { state, fence, nextSeq } = after;
  const isSame = state === before.state && fence === before.fence && nextSeq === before.nextSeq;
  // Ahead of the wall clock, each change of the queue stores how far time has come: it must not pass again.
  if (!isSame || host.isClockAhead()) {
    host.sql(
      "UPDATE lease SET state = ?, fence = ?, next_seq = ?, at = ?",
      JSON.stringify(state),
      fence,
      nextSeq,
      now,
    );
  }
  saveList(host, "waiter", "seq", before.waiters, after.waiters, (waiter) => ({
    seq: waiter.seq,
    body: JSON.stringify(waiter),
  }));
  saveList(host, "ended", "token", before.ended, after.ended, (ended) => ended);
}
