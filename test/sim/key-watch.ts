/**
 * Owns the invariants of keys: none runs twice, its answer is always the same, and what was acknowledged is not taken
 * back. Knows only what began in an agent and what callers were told.
 */
import { limits } from "../../src/protocol/limits.ts";
import type { Command } from "./agent.ts";
import type { World } from "./world.ts";

type Began = { run: number; at: number; isAcknowledged: boolean };

export class KeyWatch {
  readonly #world: World;
  readonly #began = new Map<string, Began>();
  /** The newest that any clock has shown: a key is remembered by that. */
  #newestAt = 0;

  constructor(world: World) {
    this.#world = world;
  }

  stepped(): void {
    this.#newestAt = Math.max(this.#newestAt, this.#world.clock());
  }

  began({ key, run, owner }: Command): void {
    if (key === undefined) return;
    const before = this.#began.get(key);
    if (before !== undefined && this.#isRemembered(before)) {
      this.#world.fail("no key runs twice", `${owner} began again, as run ${run}`);
    }
    this.#began.set(key, { run, at: this.#newestAt, isAcknowledged: false });
  }

  isAcknowledged(key: string): boolean {
    const began = this.#began.get(key);
    return began?.isAcknowledged === true && this.#isRemembered(began);
  }

  /** How it ended, as a caller was told. */
  told(key: string, exitCode: unknown): void {
    const began = this.#began.get(key);
    if (began !== undefined && began.run === exitCode) began.isAcknowledged = true;
    else if (began === undefined || this.#isRemembered(began)) {
      const truth = began === undefined ? "it never began" : `run ${began.run} was its own`;
      this.#world.fail("one key, one answer", `${key} ended with ${exitCode}, but ${truth}`);
    }
  }

  /** A call that came after that was told of an interruption. */
  toldInterrupted(key: string): void {
    if (!this.isAcknowledged(key)) return;
    this.#world.fail("what was answered stays", `${key} had ended, and was interrupted later`);
  }

  #isRemembered({ at }: Began): boolean {
    return this.#newestAt - at < limits.keyMs - this.#world.weather.setBackMs;
  }
}
