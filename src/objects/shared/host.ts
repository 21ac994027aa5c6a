/**
 * Owns what every object needs of where it lives. In production that is a Durable Object; in the simulation it is a
 * database in memory and a clock that a seed moves.
 */

export type SqlValue = string | number | null;

export interface Place {
  /** Synchronous; writes without an await between them are one atomic unit. */
  sql<Row extends Record<string, SqlValue>>(query: string, ...bindings: SqlValue[]): Row[];
  /** All that the work writes, or where it throws nothing: a row that cannot be written leaves no half of a commit. */
  together<T>(work: () => T): T;
  /** One alarm: the earliest deadline of the whole object. Part of the same commit as the rows beside it. */
  setAlarm(at: number): void;
  /** Rows are on disk. Calls to other objects wait for that by themselves; control of a container does not. */
  durable(): Promise<void>;
  /** Keeps the object until the work is done; the work never rejects. */
  background(work: Promise<void>): void;
  /** Everything that was stored is gone. */
  wipe(): Promise<void>;
  clock(): number;
  /** Calls back once, unless the answered function is called before. */
  timer(ms: number, ring: () => void): () => void;
  /** Letters and digits, drawn by chance. */
  draw(length: number): string;
  log(line: Record<string, string | number | undefined>): void;
}
