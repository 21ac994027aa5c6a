/** The rows of idempotency keys: which call each stands for and how it ended. Bounded in number and in time. */
import { BerthError, type ErrorFacts } from "../../../protocol/errors.ts";
import { limits } from "../../../protocol/limits.ts";
import { replaceInto } from "../../shared/columns.ts";
import type { Host } from "../host.ts";

/** `exitCode` and the like. */
export type Outcome = ErrorFacts;

export type KeyRow = {
  key: string;
  /** Hash of what makes two calls the same. */
  hash: string;
  /** The id by which the agent knows the call. */
  id: string;
  incarnation: string;
  at: number;
  outcome: Outcome | undefined;
};

type StoredRow = Omit<KeyRow, "outcome"> & { outcome: string | null };

/** Pruning scans all rows, which costs a millisecond or two: not on each call, not even when there is no room. */
const pruneEveryMs = { withRoom: 10_000, full: 1_000 };

export class KeyRows {
  readonly #host: Host;
  readonly #now: () => number;
  #count: number | undefined;
  #prunedAt = Number.NEGATIVE_INFINITY;

  constructor(host: Host, now: () => number) {
    this.#host = host;
    this.#now = now;
  }

  find(key: string): KeyRow | undefined {
    const [row] = this.#host.sql<StoredRow>(
      "SELECT key, hash, id, incarnation, at, outcome FROM keyed WHERE key = ? AND until > ?",
      key,
      this.#now(),
    );
    if (row === undefined) return undefined;
    const { outcome } = row;
    return { ...row, outcome: outcome === null ? undefined : (JSON.parse(outcome) as Outcome) };
  }

  /** `lastsMs`: how long the call may run. Until that is known to be over, its key stays. */
  insert({ key, hash, id, incarnation }: Omit<KeyRow, "at" | "outcome">, lastsMs: number): void {
    const now = this.#now();
    this.#makeRoom(now);
    const until = now + lastsMs + limits.keyMs;
    const row = { key, hash, id, incarnation, at: now, until, outcome: null };
    replaceInto(this.#host, "keyed", row);
    // May count a replaced row twice, until the next prune.
    this.#count = (this.#count ?? 0) + 1;
  }

  /** Written once: a second response says the same. */
  saveOutcome({ key, id }: Pick<KeyRow, "key" | "id">, outcome: Outcome): void {
    this.#host.sql(
      "UPDATE keyed SET outcome = ?, until = ? WHERE key = ? AND id = ? AND outcome IS NULL",
      JSON.stringify(outcome),
      this.#now() + limits.keyMs,
      key,
      id,
    );
  }

  /** Removes a key under which nothing ran. */
  remove({ key, id }: Pick<KeyRow, "key" | "id">): void {
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
    throw new BerthError("too_many", `${limits.keysMax} idempotency keys are already stored.`, {
      hint: "Each is stored for ten minutes after its call. Wait, or call without `Idempotency-Key`.",
      facts: { limit: limits.keysMax },
    });
  }
}
