/**
 * A Directory in memory with its rows, its clock, and sandboxes that respond, are unreachable or never respond. The
 * Directory is the real one; it can be restarted over its rows.
 */
import { DatabaseSync } from "node:sqlite";
import { expect } from "vitest";
import { DirectoryActor, type FindOrCreateCall } from "../../../src/objects/directory/actor.ts";
import type { SandboxPort } from "../../../src/objects/directory/sandbox-tasks.ts";
import type { NewSandbox } from "../../../src/objects/sandbox/lifecycle/lifecycle.ts";
import type { ObjectHost, SqlValue } from "../../../src/objects/shared/host.ts";
import { type ErrorValue, type Result, refusedResult } from "../../../src/objects/shared/result.ts";
import type { Report } from "../../../src/protocol/directory.ts";
import { BerthError } from "../../../src/protocol/errors.ts";
import type { Quota } from "../../../src/protocol/fields/quota.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Sandbox } from "../../../src/protocol/sandbox.ts";
import { transaction } from "../../fakes/transaction.ts";

type Timer = { dueAt: number; ring: () => void };
type Call = { scope?: string | undefined; key?: string | undefined; count?: number } & Partial<
  Pick<FindOrCreateCall, "onExisting" | "claim">
>;

export class DirectoryHarness implements ObjectHost {
  readonly rows = new DatabaseSync(":memory:");
  readonly sandboxes = new Map<string, FakeSandbox>();
  /** The calls to sandboxes, in order. */
  readonly calls: string[] = [];
  /** How sandboxes that are created from now on behave. */
  next: FakeSandbox["mode"] = "answers";
  alarmAt: number | undefined;
  now = 1_800_000_000_000;
  /** For instances from the next restart on. */
  quotas: ReadonlyMap<string, Quota> = new Map();
  directory: DirectoryActor;
  readonly logged: Record<string, unknown>[] = [];
  readonly #timers = new Set<Timer>();
  #drawn = 0;

  constructor() {
    this.directory = this.restart();
  }

  /** Starts a new instance over the same rows. */
  restart(): DirectoryActor {
    this.#timers.clear();
    this.directory = new DirectoryActor(this, (id) => this.#port(id), this.quotas);
    return this.directory;
  }

  findOrCreate(call: Call = {}): Promise<Awaited<ReturnType<DirectoryActor["findOrCreate"]>>> {
    return this.directory.findOrCreate(this.call(call));
  }

  call({ onExisting = "reuse", key, scope, claim, count = 1 }: Call): FindOrCreateCall {
    const spec = {
      id: this.newId(),
      tenant: "local",
      createdAt: this.now,
      env: {},
      network: { internet: true },
      idleTimeoutMs: 600_000,
      onIdle: "pause" as const,
      wake: "auto" as const,
      ...(scope === undefined ? {} : { scope: { repo: scope, branch: "main", config: "" } }),
    };
    const make: NewSandbox = { spec, metadata: {}, start: false };
    const others = Array.from({ length: count - 1 }, () => ({
      ...make,
      spec: { ...spec, id: this.newId() },
    }));
    return {
      make,
      ...(others.length > 0 ? { others } : {}),
      onExisting,
      key,
      ...(claim === undefined ? {} : { claim }),
      hash: JSON.stringify({ scope, onExisting }),
    };
  }

  newId(): string {
    return `a${String(this.#drawn++).padStart(23, "0")}`;
  }

  box(id: string): FakeSandbox {
    const box = this.sandboxes.get(id);
    if (box === undefined) throw new Error(`${id} was never made`);
    return box;
  }

  row(id: string): Record<string, SqlValue> | undefined {
    return this.sql("SELECT * FROM sandbox WHERE id = ?", id)[0];
  }

  current(scope: string): SqlValue | undefined {
    const key = JSON.stringify([scope, "main", ""]);
    return this.sql("SELECT id FROM scope WHERE key = ?", key)[0]?.id;
  }

  /** Lets time pass: due timers fire. */
  async pass(ms: number): Promise<void> {
    this.now += ms;
    for (const timer of [...this.#timers]) {
      if (timer.dueAt > this.now) continue;
      this.#timers.delete(timer);
      timer.ring();
    }
    await settle();
  }

  /** The call is refused when its sandbox has not responded in time. */
  async expectUnavailable(call: Promise<unknown>): Promise<void> {
    const refused = expect(call).rejects.toMatchObject({ code: "unavailable" });
    await settle();
    await this.pass(limits.directoryRequestMs);
    await refused;
  }

  /** Lets time pass until the alarm is due, then rings. */
  async passToAlarm(): Promise<boolean> {
    await this.pass(Math.max(0, (this.alarmAt ?? this.now) - this.now));
    return this.ring();
  }

  /** False if no alarm is due. */
  async ring(): Promise<boolean> {
    if (this.alarmAt === undefined || this.alarmAt > this.now) return false;
    this.alarmAt = undefined;
    const rung = this.directory.alarm();
    await settle();
    await this.pass(1_000);
    await rung;
    return true;
  }

  sql<Row extends Record<string, SqlValue>>(query: string, ...bindings: SqlValue[]): Row[] {
    return this.rows.prepare(query).all(...bindings) as Row[];
  }

  transaction<T>(work: () => T): T {
    return transaction(this.rows, work);
  }

  setAlarm(dueAt: number): void {
    this.alarmAt = dueAt;
  }

  flush(): Promise<void> {
    return Promise.resolve();
  }

  waitUntil(): void {}

  async deleteAll(): Promise<void> {
    throw new Error("a Directory is never deleted");
  }

  clock(): number {
    return this.now;
  }

  setTimer(ms: number, ring: () => void): () => void {
    const timer = { dueAt: this.now + ms, ring };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  get timers(): number {
    return this.#timers.size;
  }

  randomId(length: number): string {
    return "e".repeat(length);
  }

  log(line: Record<string, unknown>): void {
    this.logged.push(line);
  }

  #port(id: string): SandboxPort {
    return {
      make: async (call): Promise<Result<Report>> => {
        this.calls.push(`make ${id}`);
        const box = this.sandboxes.get(id) ?? new FakeSandbox(this, call, this.next);
        if (box.mode === "refuses") return unsupported();
        this.sandboxes.set(id, box);
        await box.connect();
        return { ok: box.report() };
      },
      report: async () => {
        this.calls.push(`report ${id}`);
        const box = this.sandboxes.get(id);
        await box?.connect();
        return box?.report();
      },
      giveWay: async (_to, gate) => {
        this.calls.push(`give way ${id}`);
        const box = this.sandboxes.get(id);
        await box?.connect();
        if (box === undefined) return undefined;
        if (this.next === "refuses") return unsupported();
        if (box.isHeld && gate.force === undefined && gate.token !== box.token) {
          return refusedResult(new BerthError("lease_held", "somebody has it"));
        }
        if (box.state !== "destroyed" && box.state !== "destroying") box.become("destroying");
        if (box.losesResponse) throw new Error("the answer was lost");
        return { ok: box.report() };
      },
    };
  }
}

function unsupported(): { refused: ErrorValue } {
  return refusedResult(new BerthError("unsupported", "not here"));
}

/** A sandbox as the Directory sees it. */
export class FakeSandbox {
  readonly id: string;
  mode: "answers" | "away" | "silent" | "refuses";
  state: Sandbox["state"] = "paused";
  metadata: Record<string, string> = {};
  /** Whether somebody holds the lease, with `token`. */
  isHeld = false;
  /** Its end succeeds, but the response is lost. */
  losesResponse = false;
  readonly token = "the token";
  revision = 1;
  events: Report["events"] = [];
  readonly #harness: DirectoryHarness;
  readonly #call: NewSandbox;

  constructor(harness: DirectoryHarness, call: NewSandbox, mode: FakeSandbox["mode"]) {
    this.#harness = harness;
    this.#call = call;
    this.id = call.spec.id;
    this.mode = mode;
  }

  become(state: Sandbox["state"]): void {
    this.state = state;
    this.revision++;
  }

  reportAs(state: Sandbox["state"]): void {
    this.become(state);
    this.sendReport();
  }

  report(): Report {
    const { spec } = this.#call;
    const now = new Date(this.#harness.now).toISOString();
    return {
      tenant: spec.tenant,
      revision: this.revision,
      asOf: this.#harness.now,
      view: {
        id: this.id,
        state: this.state,
        stateSince: now,
        createdAt: new Date(spec.createdAt).toISOString(),
        metadata: this.metadata,
        ...(spec.scope === undefined ? {} : { scope: spec.scope }),
      } as Report["view"],
      events: this.events,
    };
  }

  sendReport(): void {
    this.#harness.directory.applyReport(this.report());
  }

  async connect(): Promise<void> {
    if (this.mode === "away") throw new Error("away");
    if (this.mode === "silent") await new Promise<never>(() => {});
  }
}

/** Waits for everything that needs no time to pass. */
export async function settle(): Promise<void> {
  for (let n = 0; n < 20; n++) await new Promise<void>((resolve) => setImmediate(resolve));
}
