/** Protects output in the ring that a viewer has yet to fetch after it was cut off: for ten seconds, or less. */
import { limits } from "../../../src/protocol/limits.ts";
import type { Viewer } from "./viewer.ts";

/** Enough to reconnect. Longer would hold up the others for a viewer that may never return. */
const whileWatchedMs = 2000;

/** From the offset at which the viewer would resume to the end of what it was sent. */
type ResumeWindow = { from: number; sent: number; since: number; timers: Timer[] };

export class ResumeWindows {
  readonly #onClose: () => void;
  /** By viewer id, oldest first. A viewer without an id has a symbol. */
  readonly #windows = new Map<string | symbol, ResumeWindow>();

  /** `onClose` is called when output is no longer protected. */
  constructor(onClose: () => void) {
    this.#onClose = onClose;
  }

  /** The oldest protected byte; infinite without one. */
  get floor(): number {
    return Math.min(...[...this.#windows.values()].map(({ from }) => from));
  }

  /** After a viewer was cut off. */
  open({ id, resumeOffset, sent }: Viewer): void {
    if (resumeOffset === undefined) return;
    const [oldest] = this.#windows.keys();
    if (this.#windows.size >= limits.terminalViewersMax && oldest !== undefined)
      this.#close(oldest);
    const key = id ?? Symbol();
    this.#close(key);
    const expire = () => {
      this.#close(key);
      this.#onClose();
    };
    const timers = [
      setTimeout(expire, limits.terminalResumeMs),
      setTimeout(this.#onClose, whileWatchedMs + 1),
    ];
    this.#windows.set(key, { from: resumeOffset, sent, since: performance.now(), timers });
  }

  /** Others watch and need the space of what is older than `mustStay`. */
  yieldTo(mustStay: number): void {
    const now = performance.now();
    for (const [key, { from, since }] of this.#windows) {
      if (from < mustStay && now - since >= whileWatchedMs) this.#close(key);
    }
  }

  /** A viewer connects, and fetches from `after` on if it resumes. */
  resume(id: string | undefined, after: number | undefined): void {
    const key = id ?? this.#anonymousWindowAt(after);
    if (key === undefined) return;
    this.#close(key);
    this.#onClose();
  }

  clear(): void {
    for (const key of this.#windows.keys()) this.#close(key);
  }

  /** The nearest window that a viewer without an id may have come back for. */
  #anonymousWindowAt(after: number | undefined): symbol | undefined {
    if (after === undefined) return undefined;
    let nearest: { key: symbol; from: number } | undefined;
    for (const [key, { from, sent }] of this.#windows) {
      if (typeof key !== "symbol" || after < from || after > sent) continue;
      if (nearest === undefined || from > nearest.from) nearest = { key, from };
    }
    return nearest?.key;
  }

  #close(key: string | symbol): void {
    for (const timer of this.#windows.get(key)?.timers ?? []) clearTimeout(timer);
    this.#windows.delete(key);
  }
}
