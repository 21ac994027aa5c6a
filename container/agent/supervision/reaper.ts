/**
 * Reaps orphans: processes whose new parent this process became. Children that the runtime started and reaps itself are
 * registered with `own`.
 */
import { reapChild } from "../kernel/libc.ts";
import { isAlive, killDescendants, listChildren } from "./proc-table.ts";

/** Deaths within this time are reaped together: reading the list for each would slow down every command. */
const sweepDelayMs = 20;

export class Reaper {
  readonly #owned = new Set<number>();
  readonly #orphans: "reap" | "kill";
  #timer: Timer | undefined;

  /** `kill`: an orphan has lost its subreaper, and is killed with all its descendants. `reap`: it may continue. */
  constructor(orphans: "reap" | "kill") {
    this.#orphans = orphans;
    process.on("SIGCHLD", () => this.#sweepSoon());
  }

  own(pid: number): void {
    this.#owned.add(pid);
  }

  /** Call when the runtime has reaped it. */
  disown(pid: number): void {
    this.#owned.delete(pid);
    this.#sweepSoon();
  }

  /** Reaps dead orphans. Returns how many orphans are left, dead or alive. */
  sweep(): number {
    if (this.#orphans === "kill" && this.#listOrphans().length > 0) {
      killDescendants(process.pid, (child) => this.#owned.has(child));
    }
    return this.#listOrphans().filter((pid) => !reapChild(pid)).length;
  }

  /** False: the limit passed and some were still there. */
  async sweepUntilNone(limitMs: number, everyMs = sweepDelayMs): Promise<boolean> {
    const deadline = performance.now() + limitMs;
    while (this.sweep() > 0) {
      if (performance.now() > deadline) return false;
      await Bun.sleep(everyMs);
    }
    return true;
  }

  /** Reaps until no orphan is dead or exiting, including the orphans that those leave in turn. */
  async reapDead(limitMs: number): Promise<void> {
    const deadline = performance.now() + limitMs;
    for (;;) {
      this.sweep();
      if (this.#listOrphans().every(isAlive) || performance.now() > deadline) return;
      await Bun.sleep(1);
    }
  }

  #listOrphans(): number[] {
    return listChildren(process.pid).filter((pid) => !this.#owned.has(pid));
  }

  #sweepSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      // The next round reaps what was just killed, and retries what could not be read.
      if (this.#mustSweepAgain()) this.#sweepSoon();
    }, sweepDelayMs);
  }

  #mustSweepAgain(): boolean {
    try {
      return this.sweep() > 0 && this.#orphans === "kill";
    } catch (error) {
      console.error("the process table cannot be read:", error);
      return true;
    }
  }
}
