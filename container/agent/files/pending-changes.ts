/**
 * Collects changes until they are sent: one for each path, which sums up all that happened to it; bounded.
 */
import { limits } from "../../../src/protocol/limits.ts";

type Change = {
  path: string;
  what: "made" | "written" | "removed";
  kind: "file" | "folder";
};

export class PendingChanges {
  #waiting = new Map<string, Change>();
  #overflown = false;

  add(change: Change): void {
    if (this.#overflown) return;
    const before = this.#waiting.get(change.path);
    // Ordered by the latest change, so that a follower never sees a child before its folder.
    this.#waiting.delete(change.path);
    const isStillNew = before?.what === "made" && change.what === "written";
    this.#waiting.set(change.path, isStillNew ? { ...change, what: "made" } : change);
    if (this.#waiting.size > limits.fileWatchEventsMax) this.overflow();
  }

  /** Drops the pending changes: followers must list the tree again. */
  overflow(): void {
    this.#waiting.clear();
    this.#overflown = true;
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0 && !this.#overflown;
  }

  take(): { overflown: boolean; changes: Change[] } {
    const result = { overflown: this.#overflown, changes: [...this.#waiting.values()] };
    this.#waiting = new Map();
    this.#overflown = false;
    return result;
  }
}
