/**
 * The rows and the alarm of one object, which outlive its instances. Rows become durable in order, some time after
 * they were written; a crash loses the rest.
 */
import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { SqlValue } from "../../src/objects/sandbox/host.ts";
import { transaction } from "../fakes/transaction.ts";
import type { Simulation } from "./simulation.ts";

export class Database {
  /** By the clock of the object. */
  alarm: number | undefined;
  /** By the wall clock. */
  alarmRingsAt: number | undefined;
  /** The alarm handler is running; the alarm is only spent when it has ended. */
  isRinging = false;
  /** Called when the alarm changed, and when rows have become durable. */
  onAlarm: () => void = () => {};
  onDurable: () => void = () => {};
  onLost: () => void = () => {};
  /** Writes take long to become durable. */
  isSlow = false;
  readonly #rows = new DatabaseSync(":memory:");
  readonly #statements = new Map<string, StatementSync>();
  readonly #simulation: Simulation;
  #durableAlarm: { alarm: number | undefined; ringsAt: number | undefined } = {
    alarm: undefined,
    ringsAt: undefined,
  };
  #isDirty = false;
  #cancelFlush = () => {};
  #waiting: (() => void)[] = [];

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
  }

  get isDirty(): boolean {
    return this.#isDirty;
  }

  sql<Row extends Record<string, SqlValue>>(query: string, ...bindings: SqlValue[]): Row[] {
    if (!query.startsWith("SELECT")) {
      const { breakage } = this.#simulation;
      if (breakage === "waiters are not written" && query.includes("INTO waiter")) return [];
      if (breakage === "keys are not written" && query.includes("INTO keyed")) return [];
      this.#touch();
    }
    return this.#all(query, bindings) as Row[];
  }

  transaction<T>(work: () => T): T {
    this.#touch();
    return transaction(this.#rows, work);
  }

  clearAlarm(): void {
    this.alarm = undefined;
    this.alarmRingsAt = undefined;
  }

  setAlarm(time: number | undefined, ringsAt = time): void {
    const { breakage, random } = this.#simulation;
    if (breakage === "an alarm is lost" && random.chance(0.3)) return;
    this.#touch();
    this.alarm = time;
    this.alarmRingsAt = ringsAt;
    this.onAlarm();
  }

  /** Resolves once all writes are on disk. */
  flushed(): Promise<void> {
    if (!this.#isDirty) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Discards what is not durable. Callers that wait for it wait for ever. */
  loseUnflushed(): void {
    this.#waiting = [];
    this.#cancelFlush();
    if (this.#isDirty) {
      this.#rows.exec("ROLLBACK");
      this.#isDirty = false;
    }
    this.isRinging = false;
    this.alarm = this.#durableAlarm.alarm;
    this.alarmRingsAt = this.#durableAlarm.ringsAt;
    this.onLost();
    this.onAlarm();
  }

  /** The alarm handler succeeded. */
  onAlarmDone(): void {
    this.isRinging = false;
    if (this.alarm === undefined && !this.#isDirty) this.#saveAlarm();
    this.onAlarm();
  }

  wipe(): void {
    this.#touch();
    const tables = this.#all(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
      [],
    );
    for (const { name } of tables) this.#rows.exec(`DROP TABLE ${name}`);
    this.clearAlarm();
    this.onAlarm();
  }

  close(): void {
    this.#rows.close();
  }

  #saveAlarm(): void {
    this.#durableAlarm = { alarm: this.alarm, ringsAt: this.alarmRingsAt };
  }

  #all(query: string, bindings: SqlValue[]): Record<string, SqlValue>[] {
    let statement = this.#statements.get(query);
    if (statement === undefined) {
      statement = this.#rows.prepare(query);
      // A CREATE statement is used once, and would be stale after a rollback.
      if (!query.startsWith("CREATE")) this.#statements.set(query, statement);
    }
    return statement.all(...bindings).map((row) => ({ ...row })) as Record<string, SqlValue>[];
  }

  #touch(): void {
    if (this.#isDirty) return;
    this.#isDirty = true;
    this.#rows.exec("BEGIN");
    const { random, schedule } = this.#simulation;
    const isSlowFlush = random.chance(0.02);
    const ms = random.between(0, this.isSlow ? 3_000 : isSlowFlush ? 200 : 3);
    this.#cancelFlush = schedule.after(ms, "rows are durable", () => this.#flush());
  }

  #flush(): void {
    this.#rows.exec("COMMIT");
    this.#isDirty = false;
    if (this.alarm !== undefined || !this.isRinging) this.#saveAlarm();
    this.onDurable();
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
