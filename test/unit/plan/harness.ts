/**
 * A plan in memory with its rows, clock and alarm, and with fake sandboxes. The plan is the real one; it can be stopped
 * between any two of its steps and restarted over its rows.
 */
import { DatabaseSync } from "node:sqlite";
import { expect } from "vitest";
import type { PlanIdentity } from "../../../src/core/plan/membership.ts";
import { PlanActor } from "../../../src/objects/plan/actor.ts";
import { commitsPage } from "../../../src/objects/plan/history.ts";
import { putMember } from "../../../src/objects/plan/members.ts";
import { commitOrRollBack, type RunCall, waitForCommit } from "../../../src/objects/plan/runs.ts";
import type { NewSandbox } from "../../../src/objects/sandbox/lifecycle/lifecycle.ts";
import type { ObjectHost, SqlValue } from "../../../src/objects/shared/host.ts";
import type { Commit, CommitsPage, Member } from "../../../src/protocol/plan.ts";
import { transaction } from "../../fakes/transaction.ts";
import { type FakeSandbox, FakeSandboxes } from "./fake-sandboxes.ts";

type Timer = { dueAt: number; ring: () => void };

export class PlanHarness {
  readonly rows = new DatabaseSync(":memory:");
  readonly sandboxes: FakeSandboxes;
  readonly identity: PlanIdentity;
  now = 1_800_000_000_000;
  alarmAt: number | undefined;
  /** How often rows were written. */
  writes = 0;
  plan: PlanActor;
  readonly logged: Record<string, unknown>[] = [];
  /** Stops the instance before this write. */
  stopsAt: (query: string, bindings: SqlValue[]) => boolean = () => false;
  readonly #timers = new Set<Timer>();
  /** Identifies the present instance; calls of earlier ones reach nobody. */
  #life = 0;

  constructor(name = "plan") {
    this.identity = { tenant: "local", name, createdAt: this.now };
    this.sandboxes = new FakeSandboxes(() => this.now);
    this.plan = this.restart();
  }

  /** Starts a new instance over the same rows. */
  restart(): PlanActor {
    this.#timers.clear();
    const life = ++this.#life;
    const isCurrent = () => life === this.#life;
    const ports = this.sandboxes.ports(isCurrent);
    this.plan = new PlanActor(this.#place(isCurrent), ports);
    return this.plan;
  }

  /** A plan with members `m0`, `m1` and so on, each with uncommitted work. */
  static async withMembers(count: number): Promise<PlanHarness> {
    const harness = new PlanHarness();
    for (let n = 0; n < count; n++)
      await harness.adopt(`m${n}`, harness.sandboxes.make(`box${n}`).id);
    return harness;
  }

  open(): PlanActor {
    this.plan.open(this.identity);
    return this.plan;
  }

  async adopt(key: string, sandbox: string): Promise<Member> {
    const put = putMember(this.open(), { key, sandbox });
    return (await this.drive(put)).member;
  }

  put(key: string, sandbox: string, make = true): Promise<Member> {
    const call = { spec: { id: sandbox }, metadata: {}, start: true } as unknown as NewSandbox;
    const wanted = { key, sandbox, ...(make ? { make: call } : {}) };
    return putMember(this.open(), wanted).then(({ member }) => member);
  }

  run(call: Partial<RunCall> = {}): Promise<Commit> {
    const { kind = "commit", mode = "atomic", allowEmpty = false, waitMs = 10_000, key } = call;
    const hash = call.hash ?? JSON.stringify({ kind, mode, allowEmpty });
    return commitOrRollBack(this.open(), { kind, mode, allowEmpty, waitMs, key, hash });
  }

  /** Begins a run that nobody waits for, as far as it comes without time passing. */
  async begin(call: Partial<RunCall> = {}): Promise<void> {
    this.run(call).catch(() => undefined);
    await settle();
  }

  waitForRun(n: number, waitMs: number): Promise<Commit> {
    return waitForCommit(this.open(), n, waitMs);
  }

  page(before: number | undefined, limit: number): CommitsPage {
    return commitsPage(this.open().host, before, limit);
  }

  /** Advances to the next timer or alarm until the work has ended. */
  async drive<T>(work: Promise<T>): Promise<T> {
    let isOver = false;
    const over = () => {
      isOver = true;
    };
    work.then(over, over);
    for (let rounds = 0; rounds < 2_000; rounds++) {
      await settle();
      if (isOver) return work;
      if (!(await this.next())) break;
    }
    throw new Error("nothing is pending any more, but the work has not ended");
  }

  /** Advances until nothing is pending. */
  async settleAll(): Promise<void> {
    for (let rounds = 0; rounds < 2_000; rounds++) {
      await settle();
      if (!(await this.next())) return;
    }
    throw new Error("it never comes to rest");
  }

  /** Advances to the next timer or alarm; false if there is none. */
  async next(): Promise<boolean> {
    const [first] = [...this.#timers].sort((a, b) => a.dueAt - b.dueAt);
    if (this.alarmAt !== undefined && this.alarmAt <= (first?.dueAt ?? Number.POSITIVE_INFINITY)) {
      await this.ring();
      return true;
    }
    if (first === undefined) return false;
    this.now = Math.max(this.now, first.dueAt);
    this.#timers.delete(first);
    first.ring();
    return true;
  }

  /** Does not wait for the alarm's end, because an alarm waits for its tasks. */
  async ring(): Promise<void> {
    this.now = Math.max(this.now, this.alarmAt ?? 0);
    this.alarmAt = undefined;
    void this.plan.alarm();
    await settle();
  }

  /** Sleeps by the harness's clock. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#timers.add({ dueAt: this.now + ms, ring: resolve }));
  }

  boxes(): FakeSandbox[] {
    return [...this.sandboxes.all.values()];
  }

  /** The error of a call that is refused, when it has ended. */
  refusal(work: Promise<unknown>): Promise<Record<string, unknown>> {
    return this.drive(refusal(work));
  }

  /** Ends every fault and waits; then there is no run, membership change, lease, timer or alarm. */
  async expectNothingLeft(): Promise<void> {
    this.stopsAt = () => false;
    this.sandboxes.fault = () => undefined;
    await this.settleAll();
    const { run = null, joining = [], leaving = [] } = this.plan.record ?? {};
    expect({ run, joining, leaving }).toEqual({ run: null, joining: [], leaving: [] });
    for (const box of this.boxes()) expect(box.heldBy).toBeNull();
    expect([this.timers, this.alarmAt]).toEqual([0, undefined]);
  }

  get timers(): number {
    return this.#timers.size;
  }

  #place(isCurrent: () => boolean): ObjectHost {
    return {
      sql: <Row extends Record<string, SqlValue>>(query: string, ...bindings: SqlValue[]) => {
        if (!isCurrent()) throw new Error("this instance was stopped");
        if (this.stopsAt(query, bindings)) {
          this.#life++;
          throw new Error("the instance is stopped by this write");
        }
        if (!/^\s*SELECT/.test(query)) this.writes++;
        return this.rows.prepare(query).all(...bindings) as Row[];
      },
      transaction: (work) => transaction(this.rows, work),
      setAlarm: (dueAt) => {
        if (isCurrent()) this.alarmAt = dueAt;
      },
      flush: () => Promise.resolve(),
      waitUntil: () => {},
      deleteAll: () => Promise.reject(new Error("a plan is never deleted")),
      clock: () => this.now,
      setTimer: (ms, ring) => {
        if (!isCurrent()) return () => {};
        const timer = { dueAt: this.now + ms, ring };
        this.#timers.add(timer);
        return () => this.#timers.delete(timer);
      },
      randomId: (length) => "e".repeat(length),
      log: (line) => void this.logged.push(line),
    };
  }
}

/** Waits for everything that needs no time to pass. */
export async function settle(): Promise<void> {
  for (let n = 0; n < 12; n++) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** The error of a refused call. */
export async function refusal(work: Promise<unknown>): Promise<Record<string, unknown>> {
  try {
    await work;
  } catch (error) {
    const { code, facts, message } = error as { code?: string; facts?: object; message: string };
    if (code === undefined) throw error;
    return { code, message, ...facts };
  }
  throw new Error("it was not refused");
}
