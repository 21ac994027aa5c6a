/**
 * Owns the one commit of a sandbox: decide, persist, arm the alarm, and only then act.
 * Does not own decisions (core), nor what callers ask for (the files beside this one).
 */

import { type Deadline, earliest } from "../../core/deadline.ts";
import { leaseDeadline } from "../../core/lease/deadline.ts";
import type { LeaseEvent, LeaseReply } from "../../core/lease/event.ts";
import { leaseEvents } from "../../core/lease/events-of.ts";
import type { Busy, Lease } from "../../core/lease/lease.ts";
import { stepLease } from "../../core/lease/step.ts";
import { seatAfter } from "../../core/plan/participant/participant.ts";
import { nextDeadline } from "../../core/sandbox/pending.ts";
import type { SandboxRecord } from "../../core/sandbox/record.ts";
import { isOver, type SandboxEvent, step } from "../../core/sandbox/step.ts";
import { unknownSandbox } from "../../protocol/errors.ts";
import type { EventData } from "../../protocol/event.ts";
import { limits } from "../../protocol/limits.ts";
import type { AgentReach } from "../../runtime/agent-client.ts";
import type { Container } from "../../runtime/runtime.ts";
import { Alarm } from "../shared/alarm.ts";
import { Watchers } from "../shared/waiters.ts";
import { AgentLine } from "./agent/agent-channel.ts";
import { AgentLink } from "./agent/agent-link.ts";
import { MetadataCopy } from "./agent/metadata-copy.ts";
import { WorkLink } from "./agent/work-link.ts";
import { Revocation } from "./dispatch/revocation.ts";
import { append } from "./event-log.ts";
import type { Host } from "./host.ts";
import { KeyedRows } from "./idempotency/key-rows.ts";
import { InFlight } from "./lease/in-flight.ts";
import { Listing } from "./lifecycle/directory-outbox.ts";
import { Idleness } from "./lifecycle/idleness.ts";
import { Pursuit } from "./lifecycle/reconciler.ts";
import { Stillness } from "./lifecycle/snapshot-freeze.ts";
import { Member } from "./plan/participant.ts";
import { create, type Facts, load, save } from "./store.ts";

/** Beyond every work during which the agent cannot answer. */
const patienceMs = limits.snapshotTimeoutMs + limits.waitMaxMs;

/** What sockets have to say: which of their leases still live, and what they are told. */
export type LeaseListener = {
  /** Before time is looked at: whoever still pings has not gone. */
  revive(lease: Lease, now: number): Lease;
  changed(before: Lease, after: Lease): void;
  /** Those that tokens opened are to end. */
  revoked(): void;
};

export class SandboxActor {
  readonly host: Host;
  listener: LeaseListener | undefined;
  readonly watchers: Watchers;
  readonly inFlight = new InFlight();
  readonly stillness: Stillness;
  readonly link: AgentLink;
  readonly line: AgentLine;
  readonly metadataCopy: MetadataCopy;
  readonly keyedRows: KeyedRows;
  /** By key, the call that is on its way to the agent; never rejects. */
  readonly keyedUnderWay = new Map<string, Promise<void>>();
  readonly work: WorkLink;
  readonly listing: Listing;
  readonly member: Member;
  readonly idleness: Idleness;
  readonly revocation: Revocation;
  readonly pursuit: Pursuit;
  #facts: Facts | undefined;
  #clock = 0;
  #container: Container | undefined;
  #reach: AgentReach | undefined;
  readonly #alarm: Alarm;
  /** The life of which lists have been told. */
  #restsIn: string | undefined;
  #logged: string | undefined;

  constructor(host: Host) {
    this.host = host;
    this.watchers = new Watchers(host);
    this.#alarm = new Alarm(host);
    this.stillness = new Stillness(host);
    this.link = new AgentLink(this);
    this.line = new AgentLine(this);
    this.metadataCopy = new MetadataCopy(this);
    this.keyedRows = new KeyedRows(host, () => this.now());
    this.work = new WorkLink(this);
    this.listing = new Listing(this);
    this.member = new Member(this);
    this.idleness = new Idleness(this);
    this.revocation = new Revocation(this);
    this.pursuit = new Pursuit(this);
    const loaded = load(host);
    this.#facts = loaded?.facts;
    this.#clock = loaded?.clock ?? 0;
  }

  /** Never runs backwards, also not over a restart: a step of the clock revives no lease. */
  now(): number {
    this.#clock = Math.max(this.#clock, this.host.clock());
    return this.#clock;
  }

  get known(): Facts | undefined {
    return this.#facts;
  }

  get facts(): Facts {
    if (this.#facts === undefined) throw unknownSandbox();
    return this.#facts;
  }

  get container(): Container {
    const { id, network } = this.facts.sandbox.spec;
    this.#container ??= this.host.openContainer(id, network);
    return this.#container;
  }

  get reach(): AgentReach {
    this.#reach ??= {
      container: this.container,
      timer: this.stillness.silence,
      awake: () => this.stillness.over(),
    };
    return this.#reach;
  }

  /** Of what the object itself has to say: it waits until files are saved, for silence before that means nothing. */
  get patientReach(): AgentReach {
    return { ...this.reach, awake: () => this.stillness.over(patienceMs) };
  }

  busy(): Busy {
    return this.inFlight.busy(this.facts.lease);
  }

  create(facts: Facts): void {
    const now = this.now();
    this.host.together(() => {
      create(this.host, facts, now);
      append(this.host, [stateEvent(facts.sandbox)], now);
      this.listing.changed(undefined, facts);
    });
    this.#facts = facts;
    this.#committed("create");
  }

  sandbox(event: SandboxEvent, by?: string): void {
    if (this.#facts === undefined) return;
    const sandbox = step(this.#facts.sandbox, event, this.now());
    if (sandbox !== this.#facts.sandbox) this.commit({ sandbox }, [], event.type, by);
  }

  lease(event: LeaseEvent, by?: string): LeaseReply {
    const { lease: before } = this.facts;
    const now = this.now();
    const revived = this.listener?.revive(before, now) ?? before;
    const { lease, reply } = stepLease(revived, event, now, this.busy());
    if (lease !== before) this.commit({ lease }, leaseEvents(before, lease, by), event.type);
    return reply;
  }

  /** The one way in which anything of a sandbox changes: all of it, or nothing. */
  commit(
    change: Partial<Facts>,
    events: readonly EventData[],
    why: string,
    by?: string,
    /** Rows that are no part of the facts. */
    write?: () => void,
  ): void {
    const before = this.facts;
    const now = this.now();
    const after = { ...before, ...change };
    after.seat = seatAfter(after.seat, before.sandbox.state, after.sandbox.state);
    const told = [...events];
    if (after.sandbox.state.name !== before.sandbox.state.name)
      told.push(stateEvent(after.sandbox));
    if (isOver(after.sandbox.state) && !isOver(before.sandbox.state)) {
      after.lease = stepLease(after.lease, { type: "destroyed" }, now, { others: 0, own: 0 }).lease;
      told.push(...leaseEvents(before.lease, after.lease, by));
    }
    this.host.together(() => {
      save(this.host, before, after, now);
      append(this.host, told, now);
      write?.();
      this.listing.changed(before, after);
    });
    // Not before: what could not be written has not happened.
    this.#facts = after;
    // What an earlier instance left running ends with its container, and frees the turn of who waited for that.
    const freed = !hasContainer(after.sandbox) && this.inFlight.inherited > 0;
    if (freed) this.inFlight.inherit(0);
    this.#committed(why);
    if (after.lease !== before.lease) this.#tellTurns(before, after);
    if (freed) this.flightChanged();
  }

  /** Resolves when `done` holds, or when the time is over. */
  async until(done: (record: SandboxRecord) => boolean, waitMs: number): Promise<void> {
    const end = this.host.clock() + waitMs;
    while (this.#facts !== undefined && !done(this.#facts.sandbox)) {
      if (!(await this.watchers.change(end - this.host.clock()))) return;
    }
  }

  async alarm(): Promise<void> {
    this.#alarm.rang();
    await this.pursuit.alarm();
  }

  async forget(): Promise<void> {
    this.#facts = undefined;
    await this.host.wipe();
  }

  /** In-flight calls bear on deadlines, and on whose turn it is, without being rows. */
  flightChanged(): void {
    if (this.#facts === undefined) return;
    const { lease } = this.#facts;
    if (lease.waiters.length > 0) this.lease({ type: "tick" });
    if (lease.state.name !== "free" || lease.waiters.length > 0) this.#arm();
  }

  #committed(why: string): void {
    const { sandbox } = this.facts;
    const next = this.#arm();
    // A line for each state, not for each lease: what is frequent stands in the events.
    if (sandbox.state.name !== this.#logged) {
      this.#logged = sandbox.state.name;
      this.host.log({ sandbox: sandbox.spec.id, state: sandbox.state.name, why, next });
    }
    this.watchers.wakeAll();
    this.pursuit.pursue();
    this.listing.tell();
  }

  /** A deadline changed that is not part of a commit. */
  rearm(): void {
    if (this.#facts !== undefined) this.#arm();
  }

  /**
   * Lists know all of it. The alarm that stood for telling them that it runs has nothing else to ring for; once for each
   * life it is moved, for with each change of metadata that would be a write more.
   */
  listed(): void {
    const { state } = this.facts.sandbox;
    if (state.name !== "running" || state.life.incarnation === this.#restsIn) return;
    this.#restsIn = state.life.incarnation;
    const next = this.#nextDeadline();
    if (next !== undefined) this.#alarm.moveTo(next.at);
  }

  #arm(): string | undefined {
    const next = this.#nextDeadline();
    if (next !== undefined) this.#alarm.setBy(next.at);
    return next?.why;
  }

  #nextDeadline(): Deadline | undefined {
    const { sandbox, lease } = this.facts;
    return earliest([
      nextDeadline(sandbox),
      leaseDeadline(lease, this.busy()),
      this.listing.deadline(),
      this.revocation.deadline(),
    ]);
  }

  /** Only the head of the queue has anything to learn from a change; at the end all have. */
  #tellTurns(before: Facts, after: Facts): void {
    if (isOver(after.sandbox.state)) this.watchers.wakeEveryTurn();
    const [head] = after.lease.waiters;
    if (after.lease.state.name === "offered" && head !== undefined) {
      this.watchers.wakeTurn(head.ticket);
    }
    this.listener?.changed(before.lease, after.lease);
  }
}

function hasContainer({ state }: SandboxRecord): boolean {
  return state.name === "running" || state.name === "pausing" || state.name === "destroying";
}

function stateEvent({ state }: SandboxRecord): EventData {
  return {
    type: "state",
    state: state.name,
    ...("reason" in state ? { reason: state.reason } : {}),
    ...(state.name === "running" ? { files: state.life.files } : {}),
  };
}
