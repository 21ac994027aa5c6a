/**
 * The invariants of idempotency keys: no key runs twice, its result is always the same, and an acknowledged result
 * stays. Sees only what starts in an agent and what callers get.
 */
import { limits } from "../../../src/protocol/limits.ts";
import type { Command } from "./agent.ts";
import type { World } from "./world.ts";

type KeyRun = { run: number; startedAt: number; isAcknowledged: boolean };

export class KeyWatch {
  readonly #world: World;
  readonly #runs = new Map<string, KeyRun>();
  /** The newest time that any clock has shown, by which keys are stored. */
  #newestAt = 0;

  constructor(world: World) {
    this.#world = world;
  }

  onStep(): void {
    this.#newestAt = Math.max(this.#newestAt, this.#world.clock());
  }

  onStarted({ key, run, owner }: Command): void {
    if (key === undefined) return;
    const before = this.#runs.get(key);
    if (before !== undefined && this.#isRemembered(before)) {
      this.#world.fail("no key runs twice", `${owner} began again, as run ${run}`);
    }
    this.#runs.set(key, { run, startedAt: this.#newestAt, isAcknowledged: false });
  }

  isAcknowledged(key: string): boolean {
    const began = this.#runs.get(key);
    return began?.isAcknowledged === true && this.#isRemembered(began);
  }

  /** Records the exit code that a caller got. */
  recordExit(key: string, exitCode: unknown): void {
    const began = this.#runs.get(key);
    if (began !== undefined && began.run === exitCode) began.isAcknowledged = true;
    else if (began === undefined || this.#isRemembered(began)) {
      const truth = began === undefined ? "it never began" : `run ${began.run} was its own`;
      this.#world.fail("one key, one answer", `${key} ended with ${exitCode}, but ${truth}`);
    }
  }

  /** A later call was interrupted. */
  recordInterrupted(key: string): void {
    if (!this.isAcknowledged(key)) return;
    this.#world.fail("what was answered stays", `${key} had ended, and was interrupted later`);
  }

  #isRemembered({ startedAt }: KeyRun): boolean {
    return this.#newestAt - startedAt < limits.keyMs - this.#world.weather.setBackMs;
  }
}
