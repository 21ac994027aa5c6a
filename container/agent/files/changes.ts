/**
 * Owns the changes that wait to be told: of each path one, what comes of all that happened to it; bounded.
 * Does not own when they are told.
 */
import { limits } from "../../../src/protocol/limits.ts";

export type Change = {
  path: string;
  what: "made" | "written" | "removed";
  kind: "file" | "folder";
};

export class Changes {
  #waiting = new Map<string, Change>();
  #overflown = false;

  add(change: Change): void {
    if (this.#overflown) return;
    const before = this.#waiting.get(change.path);
    // Told in the order in which they came last, so that who follows them never sees a child before its folder.
    this.#waiting.delete(change.path);
    const isStillNew = before?.what === "made" && change.what === "written";
    this.#waiting.set(change.path, isStillNew ? { ...change, what: "made" } : change);
    if (this.#waiting.size > limits.fileWatchEventsMax) this.overflow();
  }

  /** What waits is worth nothing then: whoever follows lists anew. */
  overflow(): void {
    this.#waiting.clear();
    this.#overflown = true;
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0 && !this.#overflown;
  }

  take(): { overflown: boolean; changes: Change[] } {
    const taken = { overflown: this.#overflown, changes: [...this.#waiting.values()] };
    this.#waiting = new Map();
    this.#overflown = false;
    return taken;
  }
}
