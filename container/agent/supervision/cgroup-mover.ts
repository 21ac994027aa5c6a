/**
 * Moves the agent out of the cgroup in which it has just spawned a command.
 *
 * The kernel takes a lock for a move that every fork reads: it waits 7 to 30 ms for all processors, unless there was a
 * move just before, when it takes 0.03 ms. So the first move after a pause runs in the background while the agent works.
 */
import { closeSync, write, writeSync } from "node:fs";

/** For this long after a move, another one is expected to be fast, and is made synchronously. */
const fastForMs = 5;

export class CgroupMover {
  #moving: Promise<void> | undefined;
  #movedAt = Number.NEGATIVE_INFINITY;

  /** Resolves when the current move is over; undefined: there is none. */
  get moving(): Promise<void> | undefined {
    return this.#moving;
  }

  /** Moves to the group whose open `cgroup.procs` is `procsFd`. Must not be called during a move. */
  moveTo(procsFd: number): void {
    if (performance.now() - this.#movedAt < fastForMs) {
      this.#finish(procsFd, writeNow(procsFd));
      return;
    }
    const moving = Promise.withResolvers<void>();
    this.#moving = moving.promise;
    write(procsFd, "0", (error) => {
      this.#moving = undefined;
      this.#finish(procsFd, error);
      moving.resolve();
    });
  }

  /** An agent that stayed in a command's group would be killed with it later, without a message. So it exits now. */
  #finish(procsFd: number, error: Error | null): void {
    closeSync(procsFd);
    this.#movedAt = performance.now();
    if (error === null) return;
    console.error("the agent cannot leave the group of a command:", error);
    process.exit(1);
  }
}

function writeNow(procsFd: number): Error | null {
  try {
    writeSync(procsFd, "0");
    return null;
  } catch (error) {
    return error as Error;
  }
}
