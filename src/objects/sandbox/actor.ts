/** The one commit of a sandbox: decides with src/core, writes the rows, arms the alarm, and only then acts. */
import { type Deadline, earliest } from "../../core/deadline.ts";
import type { CallsInFlight, Lease, LeaseEvent, LeaseReply } from "../../core/lease/lease.ts";
import { leaseDeadline, stepLease } from "../../core/lease/step.ts";
import { leaseEventsBetween } from "../../core/lease/view.ts";
import { recordRestoreResult } from "../../core/plan/participant/participant.ts";
import { destroyedError } from "../../core/sandbox/admit.ts";
import { sandboxDeadline } from "../../core/sandbox/pending.ts";
import type { Incarnation, SandboxRecord } from "../../core/sandbox/record.ts";
import { isEnding, type SandboxEvent, stepSandbox } from "../../core/sandbox/step.ts";
import { unknownSandbox } from "../../protocol/errors.ts";
import type { EventData } from "../../protocol/event.ts";
import type { ContainerRuntime } from "../../runtime/runtime.ts";
import { Alarm } from "../shared/alarm.ts";
import { Waiters } from "../shared/waiters.ts";
import { AgentChannel } from "./agent/agent-channel.ts";
import { AgentClient } from "./agent/agent-client.ts";
import { metadataCopy, settingsCopy } from "./agent/agent-copy.ts";
import { AgentLink } from "./agent/agent-link.ts";
import { ReadyPorts } from "./agent/ready-ports.ts";
import { WorkMonitor } from "./agent/work-monitor.ts";
import { CancellableCalls } from "./calls/cancel.ts";
import { ExecLog } from "./calls/exec.ts";
import { Revocation } from "./dispatch/revocation.ts";
import { append, streams } from "./events.ts";
import type { Host } from "./host.ts";
import { KeyRows } from "./idempotency/key-rows.ts";
import { InFlight } from "./lease/in-flight.ts";
import { AutomaticCheckpoints } from "./lifecycle/automatic-checkpoints.ts";
import { DirectoryOutbox } from "./lifecycle/directory-outbox.ts";
import { Idleness } from "./lifecycle/idleness.ts";
import { KeepAlive } from "./lifecycle/keep-alive.ts";
import { Reconciler } from "./lifecycle/reconciler.ts";
import { SnapshotFreeze } from "./lifecycle/snapshot-freeze.ts";
import { PlanParticipant } from "./plan/participant.ts";
import { create, type Facts, load, save } from "./store.ts";

/** The lease sockets, as far as the actor needs them: they prolong leases and are notified of changes. */
export type LeaseListener = {
  /** Called by a fresh instance: some sockets were lost with the last one. */
  recoverSockets(): void;
  /** Called before expiry is checked: a socket that still pings keeps its lease. */
  revive(lease: Lease, now: number): Lease;
  leaseChanged(before: Lease, after: Lease): void;
  /** Called after tokens were revoked: the sockets that they opened must close. */
  tokensRevoked(): void;
};

export class SandboxActor {
  readonly host: Host;
  listener: LeaseListener | undefined;
  readonly waiters: Waiters;
  readonly inFlight = new InFlight();
  readonly freeze: SnapshotFreeze;
  readonly agentClient = new AgentClient(this);
  readonly link = new AgentLink(this);
  readonly channel = new AgentChannel(this);
  readonly metadataCopy = metadataCopy(this);
  readonly settingsCopy = settingsCopy(this);
  readonly readyPorts = new ReadyPorts(this);
  readonly keyRows: KeyRows;
  /** By idempotency key, the call that is on its way to the agent. The promises never reject. */
  readonly keysInFlight = new Map<string, Promise<void>>();
  readonly workMonitor = new WorkMonitor(this);
  readonly cancellable = new CancellableCalls(this);
  readonly execLog = new ExecLog(this);
  readonly eventStreams = streams(this);
  readonly outbox: DirectoryOutbox;
  readonly participant = new PlanParticipant(this);
  readonly idleness = new Idleness(this);
  readonly keepAlive = new KeepAlive(this);
  readonly revocation = new Revocation(this);
  readonly automaticCheckpoints = new AutomaticCheckpoints(this);
  readonly reconciler: Reconciler;
  #facts: Facts | undefined;
  #container: ContainerRuntime | undefined;
  readonly #alarm: Alarm;
  /** The incarnation that the Directory already lists as running. */
  #listedIncarnation: string | undefined;
  #loggedState: string | undefined;

  constructor(host: Host) {
    this.host = host;
    this.waiters = new Waiters(host);
    this.#alarm = new Alarm(host);
    this.freeze = new SnapshotFreeze(host);
    this.keyRows = new KeyRows(host, () => this.now());
    this.outbox = new DirectoryOutbox(this);
    this.reconciler = new Reconciler(this);
    const loaded = load(host);
    this.#facts = loaded?.facts;
    if (loaded !== undefined) host.startClockAt(loaded.clock);
  }

  /** Never runs backwards, not even over a restart: a clock that is set back must not revive a lease. */
  now(): number {
    return this.host.clock();
  }

  get existing(): Facts | undefined {
    return this.#facts;
  }

  get facts(): Facts {
    if (this.#facts === undefined) throw unknownSandbox();
    return this.#facts;
  }

  /** The agent of the running container, if there is one. */
  get runningAgent(): Incarnation | undefined {
    const state = this.#facts?.sandbox.state;
    return state?.name === "running" ? state.life : undefined;
  }

  /** Whether this incarnation still runs, as far as this object knows. */
  isCurrent(agent: Incarnation): boolean {
    return this.runningAgent?.incarnation === agent.incarnation;
  }

  refuseIfDestroyed(): void {
    const { state } = this.facts.sandbox;
    if (isEnding(state) && "reason" in state) throw destroyedError(state.reason);
  }

  get container(): ContainerRuntime {
    const { id, network } = this.facts.sandbox.spec;
    this.#container ??= this.host.openRuntime(id, network);
    return this.#container;
  }

  countInFlight(): CallsInFlight {
    return this.inFlight.busy(this.facts.lease);
  }

  create(facts: Facts): void {
    const now = this.now();
    this.host.transaction(() => {
      create(this.host, facts, now);
      append(this.host, [stateEvent(facts.sandbox)], now);
      this.outbox.recordChange(undefined, facts);
    });
    this.#facts = facts;
    this.#committed("create");
  }

  stepSandbox(event: SandboxEvent, by?: string): void {
    if (this.#facts === undefined) return;
    const sandbox = stepSandbox(this.#facts.sandbox, event, this.now());
    if (sandbox !== this.#facts.sandbox) this.commit({ sandbox }, [], event.type, by);
  }

  stepLease(event: LeaseEvent, by?: string): LeaseReply {
    const { lease: before } = this.facts;
    const now = this.now();
    const revived = this.listener?.revive(before, now) ?? before;
    const { lease, reply } = stepLease(revived, event, now, this.countInFlight());
    if (lease !== before) this.commit({ lease }, leaseEventsBetween(before, lease, by), event.type);
    return reply;
  }

  /** The only way in which anything of a sandbox changes: all of it is written, or nothing. */
  commit(
    change: Partial<Facts>,
    events: readonly EventData[],
    reason: string,
    by?: string,
    /** Writes further rows in the same transaction. */
    write?: () => void,
  ): void {
    const before = this.facts;
    const now = this.now();
    const after = { ...before, ...change };
    after.participant = recordRestoreResult(
      after.participant,
      before.sandbox.state,
      after.sandbox.state,
    );
    const appended = [...events];
    if (after.sandbox.state.name !== before.sandbox.state.name)
      appended.push(stateEvent(after.sandbox));
    if (isEnding(after.sandbox.state) && !isEnding(before.sandbox.state)) {
      after.lease = stepLease(after.lease, { type: "destroyed" }, now, { others: 0, own: 0 }).lease;
      appended.push(...leaseEventsBetween(before.lease, after.lease, by));
    }
    this.host.transaction(() => {
      save(this.host, before, after, now);
      append(this.host, appended, now);
      write?.();
      this.outbox.recordChange(before, after);
    });
    // Only now: if the transaction failed, nothing has changed.
    this.#facts = after;
    // The runtime knows the network from when it was opened.
    if (after.sandbox.spec.network !== before.sandbox.spec.network) this.#container = undefined;
    // The calls of an earlier instance end with their container, so waiters may get their turn.
    const isFreed = !hasContainer(after.sandbox) && this.inFlight.inherited > 0;
    if (isFreed) this.inFlight.inherited = 0;
    this.#committed(reason);
    if (after.lease !== before.lease) this.#wakeWaiters(before, after);
    if (isFreed) this.inFlightChanged();
  }

  /** Resolves when `done` holds, or after `waitMs`. */
  async waitUntil(done: (record: SandboxRecord) => boolean, waitMs: number): Promise<void> {
    const end = this.host.clock() + waitMs;
    while (this.#facts !== undefined && !done(this.#facts.sandbox)) {
      if (!(await this.waiters.waitForChange(end - this.host.clock()))) return;
    }
  }

  async alarm(): Promise<void> {
    this.#alarm.rang();
    this.keepAlive.renew();
    await this.reconciler.onAlarm();
  }

  async forget(): Promise<void> {
    this.#facts = undefined;
    await this.host.deleteAll();
  }

  /** Calls in flight influence deadlines and the lease queue although they are not rows. */
  inFlightChanged(): void {
    if (this.#facts === undefined) return;
    const { lease } = this.#facts;
    if (lease.waiters.length > 0) this.stepLease({ type: "tick" });
    if (lease.state.name !== "free" || lease.waiters.length > 0) this.armAlarm();
  }

  #committed(why: string): void {
    const { sandbox } = this.facts;
    const next = this.armAlarm();
    // Logs each state once. Lease changes are too frequent for the log; they are in the events.
    if (sandbox.state.name !== this.#loggedState) {
      this.#loggedState = sandbox.state.name;
      this.host.log({ sandbox: sandbox.spec.id, state: sandbox.state.name, why, next });
    }
    this.waiters.wakeAll();
    this.reconciler.reconcile();
    this.outbox.flush();
  }

  /**
   * The Directory has the newest report. The alarm that was set to repeat the report is moved back, once per
   * incarnation: doing so after each metadata change would cost a write each.
   */
  onListed(): void {
    const { state } = this.facts.sandbox;
    if (state.name !== "running" || state.life.incarnation === this.#listedIncarnation) return;
    this.#listedIncarnation = state.life.incarnation;
    const next = this.#nextDeadline();
    if (next !== undefined) this.#alarm.moveTo(next.at);
  }

  /** Call when a deadline changed outside a commit. Returns what it is for. */
  armAlarm(): string | undefined {
    if (this.#facts === undefined) return undefined;
    const next = this.#nextDeadline();
    if (next !== undefined) this.#alarm.setBy(next.at);
    return next?.why;
  }

  #nextDeadline(): Deadline | undefined {
    const { sandbox, lease } = this.facts;
    return earliest([
      sandboxDeadline(sandbox),
      leaseDeadline(lease, this.countInFlight()),
      this.outbox.deadline(),
      this.revocation.deadline(),
      this.automaticCheckpoints.deadline(),
      this.keepAlive.deadline(),
    ]);
  }

  /** Wakes the head of the queue, which alone can be granted the lease; at the end of the sandbox wakes all waiters. */
  #wakeWaiters(before: Facts, after: Facts): void {
    if (isEnding(after.sandbox.state)) this.waiters.wakeAllTurns();
    const [head] = after.lease.waiters;
    if (after.lease.state.name === "offered" && head !== undefined) {
      this.waiters.wakeTurn(head.ticket);
    }
    this.listener?.leaseChanged(before.lease, after.lease);
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
