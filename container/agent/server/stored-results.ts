/**
 * Stores the results of commands that were called with an idempotency key: an id never runs twice in this incarnation,
 * and a repeated call joins the run or gets the same bytes. The object maps keys to ids.
 */

import { BerthError, type ErrorCode } from "../../../src/protocol/error-codes.ts";
import type { ExecResult } from "../../../src/protocol/exec.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { boundByMemory } from "../memory.ts";

type Outcome = Pick<ExecResult, "exitCode" | "signal" | "timedOut">;

type Run =
  | { state: "running"; result: Promise<Uint8Array> }
  /** Its bytes are in `#results`, unless they were evicted. */
  | { state: "ended"; endedAt: number; outcome: Outcome }
  | { state: "failed"; endedAt: number; error: unknown };

/** Nothing ran: the same call may be repeated, and succeed then. */
const notRunCodes: ErrorCode[] = ["bad_cwd", "stale_fence", "too_many", "unavailable"];

export class StoredResults {
  /** By id; ended runs are in the order of their ends. */
  readonly #runs = new Map<string, Run>();
  /** Oldest first. */
  readonly #results = new Map<string, Uint8Array>();
  readonly #bytesMax: number;
  readonly #countMax: number;
  #bytes = 0;

  constructor(
    bytesMax: number = boundByMemory(limits.storedResultsBytesMax),
    countMax: number = limits.keysMax,
  ) {
    this.#bytesMax = bytesMax;
    this.#countMax = countMax;
  }

  /**
   * Joins a run that this incarnation knows, or starts one. A `start` that throws has started nothing. Synchronous until
   * the start, so that no other call can start the same id in between.
   */
  run(id: string, start: () => Promise<ExecResult>): Promise<Uint8Array> {
    const known = this.find(id);
    if (known !== undefined) return known;
    this.#evictForNext();
    const result = start().then(
      (finished) => this.#onEnded(id, finished),
      (error: unknown) => {
        this.#onFailed(id, error);
        throw error;
      },
    );
    this.#runs.set(id, { state: "running", result });
    return result;
  }

  /** Undefined: this incarnation has never started it. */
  find(id: string): Promise<Uint8Array> | undefined {
    const run = this.#runs.get(id);
    if (run === undefined) return undefined;
    if (run.state === "running") return run.result;
    if (run.state === "failed") return Promise.reject(run.error);
    const bytes = this.#results.get(id);
    return bytes === undefined
      ? Promise.reject(resultEvicted(run.outcome))
      : Promise.resolve(bytes);
  }

  #onEnded(id: string, result: ExecResult): Uint8Array {
    const { exitCode, signal, timedOut } = result;
    const outcome = { exitCode, signal, timedOut };
    this.#moveToEnd(id, { state: "ended", endedAt: performance.now(), outcome });
    const bytes = Buffer.from(JSON.stringify(result));
    this.#results.set(id, bytes);
    this.#bytes += bytes.length;
    for (const [oldest, { length }] of this.#results) {
      if (this.#bytes <= this.#bytesMax) break;
      this.#results.delete(oldest);
      this.#bytes -= length;
    }
    return bytes;
  }

  #onFailed(id: string, error: unknown): void {
    if (error instanceof BerthError && notRunCodes.includes(error.code)) this.#runs.delete(id);
    else
      this.#moveToEnd(id, {
        state: "failed",
        endedAt: performance.now(),
        error: withoutOutput(error),
      });
  }

  #moveToEnd(id: string, run: Run): void {
    this.#runs.delete(id);
    this.#runs.set(id, run);
  }

  /** An id is forgotten only when another one needs its slot, so that no clock decides more than it must. */
  #evictForNext(): void {
    if (this.#runs.size < this.#countMax) return;
    for (const [id, run] of this.#runs) {
      if (run.state === "running") continue;
      if (performance.now() - run.endedAt < limits.keyMs) break;
      this.#runs.delete(id);
      const bytes = this.#results.get(id);
      this.#results.delete(id);
      this.#bytes -= bytes?.length ?? 0;
      return;
    }
    throw new BerthError(
      "too_many",
      `${this.#countMax} commands with a key are remembered already.`,
      {
        hint: "Each is remembered for ten minutes after its end. Wait, or call without a key.",
        facts: { limit: this.#countMax },
      },
    );
  }
}

/** A command that ended its session: how it ended is stored, but not its output, which would have no bound. */
function withoutOutput(error: unknown): unknown {
  if (!(error instanceof BerthError) || error.facts.stdout === undefined) return error;
  const { stdout: _stdout, stderr: _stderr, truncated: _truncated, ...facts } = error.facts;
  const { code, message, hint } = error;
  return new BerthError(code, message, { ...(hint === undefined ? {} : { hint }), facts });
}

function resultEvicted({ exitCode, signal, timedOut }: Outcome): BerthError {
  return new BerthError("result_gone", "The command ran. Its output is no longer stored.", {
    facts: { exitCode, signal, timedOut },
  });
}
