/**
 * Owns what a sandbox needs of the place it lives in. In production that is a Durable Object; in the simulation
 * it is a database in memory and a clock that a seed moves.
 */
import type { Container } from "../../container/container.ts";
import type { Network } from "../../protocol/sandbox.ts";

export type SqlValue = string | number | null;

export interface Host {
  /** Synchronous; writes without an await between them are one atomic unit. */
  sql<Row extends Record<string, SqlValue>>(query: string, ...bindings: SqlValue[]): Row[];
  /** One alarm: the earliest deadline of the whole sandbox. Part of the same commit as the rows beside it. */
  setAlarm(at: number): void;
  /** Rows are on disk. Control of a container does not wait for that by itself. */
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
  openContainer(id: string, network: Network): Container;
  log(line: Record<string, string | number | undefined>): void;
}
