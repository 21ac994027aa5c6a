/**
 * Owns the dead that nobody waits for: orphans whose new parent this process became.
 * Does not own children that the runtime started and collects itself; they are told to it by `own`.
 */
import { collectChild } from "../kernel/libc.ts";
import { childrenOf, isAlive, killBelow } from "./proc-table.ts";

/** Deaths within this time are collected together: reading the list for each would cost every command. */
const collectAfterMs = 20;

export class Reaper {
  readonly #owned = new Set<number>();
  readonly #strays: "collect" | "end";
  #timer: Timer | undefined;

  /** `end`: a child that we did not start has lost its keeper, and is killed with all below it. */
  constructor(strays: "collect" | "end") {
    this.#strays = strays;
    process.on("SIGCHLD", () => this.#sweepSoon());
  }

  own(pid: number): void {
    this.#owned.add(pid);
  }

  /** Once the runtime has collected it. */
  disown(pid: number): void {
    this.#owned.delete(pid);
    this.#sweepSoon();
  }

  /** Children that we did not start, dead or alive, after the dead were collected. */
  sweep(): number {
    if (this.#strays === "end" && this.#unknown().length > 0) {
      killBelow(process.pid, (child) => this.#owned.has(child));
    }
    return this.#unknown().filter((pid) => !collectChild(pid)).length;
  }

  /** False: the limit passed and some were still there. */
  async sweepUntilNone(limitMs: number, everyMs = collectAfterMs): Promise<boolean> {
    const deadline = performance.now() + limitMs;
    while (this.sweep() > 0) {
      if (performance.now() > deadline) return false;
      await Bun.sleep(everyMs);
    }
    return true;
  }

  /** Until no child that we did not start is dead, or about to be, and with it what it leaves to us in turn. */
  async collectDead(limitMs: number): Promise<void> {
    const deadline = performance.now() + limitMs;
    for (;;) {
      this.sweep();
      if (this.#unknown().every(isAlive) || performance.now() > deadline) return;
      await Bun.sleep(1);
    }
  }

  #unknown(): number[] {
    return childrenOf(process.pid).filter((pid) => !this.#owned.has(pid));
  }

  #sweepSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      // What was killed just now is collected in the next round, and so is what could not be looked at.
      if (this.#isLeft()) this.#sweepSoon();
    }, collectAfterMs);
  }

  #isLeft(): boolean {
    try {
      return this.sweep() > 0 && this.#strays === "end";
    } catch (error) {
      console.error("the dead cannot be looked for:", error);
      return true;
    }
  }
}
