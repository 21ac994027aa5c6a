/**
 * Owns the rows of one sandbox: the only SQL of this object, and its append-only migrations.
 * Does not own what the rows mean.
 */
import type { SandboxRecord } from "../../core/sandbox/record.ts";

/** A step is never changed once it was released: a database of every old version must open. */
const migrations: readonly string[] = [
  `CREATE TABLE sandbox (
     one INTEGER PRIMARY KEY CHECK (one = 1),
     spec TEXT NOT NULL,
     state TEXT NOT NULL,
     restarts TEXT NOT NULL
   )`,
];

type Row = { spec: string; state: string; restarts: string };

export class SandboxStore {
  readonly #storage: DurableObjectStorage;
  #migrated = false;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
  }

  /** Undefined for an id that was never created: reading it leaves nothing behind. */
  load(): SandboxRecord | undefined {
    if (this.#version() === 0) return undefined;
    this.#migrate();
    const row = this.#storage.sql
      .exec<Row>("SELECT spec, state, restarts FROM sandbox")
      .toArray()[0];
    if (row === undefined) return undefined;
    return {
      spec: JSON.parse(row.spec),
      state: JSON.parse(row.state),
      restarts: JSON.parse(row.restarts),
    };
  }

  create(record: SandboxRecord): void {
    this.#migrate();
    this.#storage.sql.exec(
      "INSERT INTO sandbox (one, spec, state, restarts) VALUES (1, ?, ?, ?)",
      JSON.stringify(record.spec),
      JSON.stringify(record.state),
      JSON.stringify(record.restarts),
    );
  }

  update(record: SandboxRecord): void {
    this.#storage.sql.exec(
      "UPDATE sandbox SET state = ?, restarts = ?",
      JSON.stringify(record.state),
      JSON.stringify(record.restarts),
    );
  }

  #migrate(): void {
    if (this.#migrated) return;
    const version = this.#version();
    if (version > migrations.length) {
      throw new Error(
        `the sandbox's rows have version ${version}, this program knows ${migrations.length}: deploy the newer one`,
      );
    }
    for (const [at, sql] of migrations.entries()) {
      if (at < version) continue;
      this.#storage.sql.exec(sql);
      this.#storage.kv.put("version", at + 1);
    }
    this.#migrated = true;
  }

  #version(): number {
    return this.#storage.kv.get<number>("version") ?? 0;
  }
}
