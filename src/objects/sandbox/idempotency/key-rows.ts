/**
 * Owns the rows of keys: which call each one stands for, the id that it got, the life it was meant for, and how it
 * ended. Bounded in number and in time. Does not own what a repeated call is told (keyed.ts).
 */
import { BerthError, type ErrorFacts } from "../../../protocol/errors.ts";
import { limits } from "../../../protocol/limits.ts";
import type { Host } from "../host.ts";

/** `exitCode` and the like. */
export type Outcome = ErrorFacts;

export type KeyedRow = {
  key: string;
  /** Of all that makes two calls the same. */
  hash: string;
  /** By which the agent knows it. */
  id: string;
  incarnation: string;
  at: number;
  outcome: Outcome | undefined;
};

type Stored = Omit<KeyedRow, "outcome"> & { outcome: string | null };

/** Looking through all rows costs a millisecond or two: not at each call, also not where there is no room. */
const pruneEveryMs = { withRoom: 10_000, full: 1_000 };

export class KeyedRows {
  readonly #host: Host;
  readonly #now: () => number;
  #count: number | undefined;
  #prunedAt = Number.NEGATIVE_INFINITY;

  constructor(host: Host, now: () => number) {
    this.#host = host;
    this.#now = now;
  }

  find(key: string): KeyedRow | undefined {
    const [row] = this.#host.sql<Stored>(
      "SELECT key, hash, id, incarnation, at, outcome FROM keyed WHERE key = ? AND until > ?",
      key,
      this.#now(),
    );
    if (row === undefined) return undefined;
    const { outcome } = row;
    return { ...row, outcome: outcome === null ? undefined : (JSON.parse(outcome) as Outcome) };
  }

  /** `lastsMs`: for so long it may be under way; while that is not known to be over, its key is not forgotten. */
  insert({ key, hash, id, incarnation }: Omit<KeyedRow, "at" | "outcome">, lastsMs: number): void {
    const now = this.#now();
    this.#makeRoom(now);
    this.#host.sql(
      `INSERT OR REPLACE INTO keyed (key, hash, id, incarnation, at, until, outcome)
       VALUES (?, ?, ?, ?, ?, ?, NULL)`,
      key,
      hash,
      id,
      incarnation,
      now,
      now + lastsMs + limits.keyMs,
    );
    // Without a look at what it replaced: too many by those, until the next count.
    this.#count = (this.#count ?? 0) + 1;
  }

  /** Written once; a second answer says the same. */
  learn({ key, id }: Pick<KeyedRow, "key" | "id">, outcome: Outcome): void {
    this.#host.sql(
      "UPDATE keyed SET outcome = ?, until = ? WHERE key = ? AND id = ? AND outcome IS NULL",
      JSON.stringify(outcome),
      this.#now() + limits.keyMs,
      key,
      id,
    );
  }

  /** Nothing was run under it. */
  forget({ key, id }: Pick<KeyedRow, "key" | "id">): void {
    this.#host.sql("DELETE FROM keyed WHERE key = ? AND id = ?", key, id);
    if (this.#count !== undefined) this.#count--;
  }

  #makeRoom(now: number): void {
    const isFull = (this.#count ?? 0) >= limits.keysMax;
    if (now - this.#prunedAt >= (isFull ? pruneEveryMs.full : pruneEveryMs.withRoom)) {
      this.#prunedAt = now;
      this.#host.sql("DELETE FROM keyed WHERE until <= ?", now);
      const [row] = this.#host.sql<{ n: number }>("SELECT count(*) AS n FROM keyed");
      this.#count = row?.n ?? 0;
    }
    if ((this.#count ?? 0) < limits.keysMax) return;
    throw new BerthError("too_many", `${limits.keysMax} keys are remembered already.`, {
      hint: "Each is remembered for ten minutes after its call; wait, or call without Idempotency-Key.",
      facts: { limit: limits.keysMax },
    });
  }
}
