/**
 * What an object needs from the platform: storage, alarm, clock and timers. In production that is a Durable Object, in
 * tests a database in memory and a clock that the test controls.
 */
export type SqlValue = string | number | null;

/** The work of a transaction. An `async` function does not fit: whatever it writes after its first `await` would be outside. */
type TransactionWork<T> = () => T extends PromiseLike<unknown> ? never : T;

export interface ObjectHost {
  /** Synchronous. Writes without an `await` between them are one atomic unit. */
  sql<Row extends Record<string, SqlValue>>(query: string, ...bindings: SqlValue[]): Row[];
  /** Writes everything or, if the work throws, nothing. Without it, a failing statement leaves the earlier ones written. */
  transaction<T>(work: TransactionWork<T>): T;
  /** Sets the one alarm of the object, as part of the same commit as the rows. */
  setAlarm(dueAt: number): void;
  /** Resolves when all rows are on disk. Calls to other objects wait for that by themselves, calls to a container do not. */
  flush(): Promise<void>;
  /** Keeps the object in memory until the work is done. The work never rejects. */
  waitUntil(work: Promise<void>): void;
  /** Deletes everything that is stored. */
  deleteAll(): Promise<void>;
  clock(): number;
  /** Calls back once, unless the returned function is called first. */
  setTimer(ms: number, callback: () => void): () => void;
  /** Random lower-case letters and digits. */
  randomId(length: number): string;
  log(line: Record<string, string | number | undefined>): void;
}
