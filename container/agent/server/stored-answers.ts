/**
 * Owns the answers of commands whose callers have a key: an id never runs twice in this life, and whoever asks again
 * joins the run or gets the same bytes. Does not own running a command, nor keys (the object has them).
 */
import { BerthError, type ErrorCode } from "../../../src/protocol/error-codes.ts";
import type { ExecResult } from "../../../src/protocol/exec.ts";
import { limits } from "../../../src/protocol/limits.ts";

type Outcome = Pick<ExecResult, "exitCode" | "signal" | "timedOut">;

type Run =
  | { state: "running"; answer: Promise<Uint8Array> }
  /** Its bytes stand among the answers, unless they were pushed out. */
  | { state: "ended"; at: number; outcome: Outcome }
  | { state: "failed"; at: number; error: unknown };

/** Nothing was run: the same call may come again and find the folder there, or its turn. */
const unrun: ErrorCode[] = ["bad_cwd", "stale_fence", "too_many", "unavailable"];

export class Kept {
  /** By id; those that have ended in the order of their ends. */
  readonly #runs = new Map<string, Run>();
  /** Oldest first. */
  readonly #answers = new Map<string, Uint8Array>();
  readonly #bytesMax: number;
  readonly #countMax: number;
  #bytes = 0;

  constructor(bytesMax: number = limits.keptAnswersBytesMax, countMax: number = limits.keysMax) {
    this.#bytesMax = bytesMax;
    this.#countMax = countMax;
  }

  /**
   * Joins a run that this life knows; else begins one. `start` that throws has begun nothing. Synchronous until it
   * has begun: between the look and that, nobody else can begin it.
   */
  run(id: string, start: () => Promise<ExecResult>): Promise<Uint8Array> {
    const known = this.answer(id);
    if (known !== undefined) return known;
    this.#makeRoom();
    const answer = start().then(
      (result) => this.#ended(id, result),
      (error: unknown) => {
        this.#failed(id, error);
        throw error;
      },
    );
    this.#runs.set(id, { state: "running", answer });
    return answer;
  }

  /** Undefined: this life has never begun it. */
  answer(id: string): Promise<Uint8Array> | undefined {
    const run = this.#runs.get(id);
    if (run === undefined) return undefined;
    if (run.state === "running") return run.answer;
    if (run.state === "failed") return Promise.reject(run.error);
    const bytes = this.#answers.get(id);
    return bytes === undefined ? Promise.reject(resultGone(run.outcome)) : Promise.resolve(bytes);
  }

  #ended(id: string, result: ExecResult): Uint8Array {
    const { exitCode, signal, timedOut } = result;
    const outcome = { exitCode, signal, timedOut };
    this.#moveToEnd(id, { state: "ended", at: performance.now(), outcome });
    const bytes = Buffer.from(JSON.stringify(result));
    this.#answers.set(id, bytes);
    this.#bytes += bytes.length;
    for (const [oldest, { length }] of this.#answers) {
      if (this.#bytes <= this.#bytesMax) break;
      this.#answers.delete(oldest);
      this.#bytes -= length;
    }
    return bytes;
  }

  #failed(id: string, error: unknown): void {
    if (error instanceof BerthError && unrun.includes(error.code)) this.#runs.delete(id);
    else
      this.#moveToEnd(id, { state: "failed", at: performance.now(), error: withoutOutput(error) });
  }

  #moveToEnd(id: string, run: Run): void {
    this.#runs.delete(id);
    this.#runs.set(id, run);
  }

  /** Nobody's clock is trusted for more than it must: an id is forgotten only where another one needs its place. */
  #makeRoom(): void {
    if (this.#runs.size < this.#countMax) return;
    for (const [id, run] of this.#runs) {
      if (run.state === "running") continue;
      if (performance.now() - run.at < limits.keyMs) break;
      this.#runs.delete(id);
      const bytes = this.#answers.get(id);
      this.#answers.delete(id);
      this.#bytes -= bytes?.length ?? 0;
      return;
    }
    throw new BerthError(
      "too_many",
      `${this.#countMax} commands with a key are remembered already`,
      {
        hint: "each is remembered for ten minutes after its end; wait, or call without a key",
        facts: { limit: this.#countMax },
      },
    );
  }
}

/** Of a command that ended its session: how it ended is kept; what it wrote would have no bound. */
function withoutOutput(error: unknown): unknown {
  if (!(error instanceof BerthError) || error.facts.stdout === undefined) return error;
  const { stdout: _stdout, stderr: _stderr, truncated: _truncated, ...facts } = error.facts;
  const { code, message, hint } = error;
  return new BerthError(code, message, { ...(hint === undefined ? {} : { hint }), facts });
}

function resultGone({ exitCode, signal, timedOut }: Outcome): BerthError {
  return new BerthError("result_gone", "the command ran; what it wrote is no longer kept", {
    facts: { exitCode, signal, timedOut },
  });
}
