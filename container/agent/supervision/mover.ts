/**
 * Owns the agent's moves out of the group of a command that was born in it.
 * Does not own where it moves to (cgroup.ts).
 *
 * A move waits until each processor has seen that one is under way, 7 to 30 ms, unless there was one just before: then
 * 0.03 ms. (The kernel takes a lock for it that every fork reads.) So the first move after a pause is made beside the
 * agent's work, and the command that has caused it is answered meanwhile.
 */
import { closeSync, write, writeSync } from "node:fs";

/** For this long after a move another one is short; where that is wrong the agent stands still for one move. */
const shortForMs = 5;

export class Mover {
  #moving: Promise<void> | undefined;
  #movedAt = Number.NEGATIVE_INFINITY;

  /** Resolves when the move that is under way is over. */
  get moving(): Promise<void> | undefined {
    return this.#moving;
  }

  /** To the group whose list of processes `way` is. Not while one is under way. */
  moveOn(way: number): void {
    if (performance.now() - this.#movedAt < shortForMs) {
      this.#moved(way, written(way));
      return;
    }
    const moving = Promise.withResolvers<void>();
    this.#moving = moving.promise;
    write(way, "0", (error) => {
      this.#moving = undefined;
      this.#moved(way, error);
      moving.resolve();
    });
  }

  /** An agent that stayed in a command's group would be killed with it, at some later time and without a word. */
  #moved(way: number, error: Error | null): void {
    closeSync(way);
    this.#movedAt = performance.now();
    if (error === null) return;
    console.error("the agent cannot leave the group of a command:", error);
    process.exit(1);
  }
}

function written(way: number): Error | null {
  try {
    writeSync(way, "0");
    return null;
  } catch (error) {
    return error as Error;
  }
}
