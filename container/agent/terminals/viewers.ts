/**
 * Owns who watches a terminal, and from that how fast it may be read: at the pace of the fastest viewer, and never
 * over what one that was cut off has yet to fetch.
 * Does not own what one viewer is sent (viewer.ts).
 */
import { limits } from "../../../src/protocol/limits.ts";
import type { Exit } from "../supervision/process-tree.ts";
import { Holds } from "./resume-window.ts";
import type { Ring } from "./ring.ts";
import type { Viewer } from "./viewer.ts";

/** How far the fastest viewer may be behind: enough to keep it busy, little to wait for after Ctrl-C. */
const behindBytesMax = limits.terminalSocketBytes;
/** One read may bring this much, after it was allowed. */
const readBytesMax = 512 * 1024;

export class Audience {
  readonly #ring: Ring;
  readonly #look: () => void;
  readonly #viewers = new Set<Viewer>();
  readonly #holds: Holds;
  #cutTimer: Timer | undefined;
  #patienceTimer: Timer | undefined;

  /** `look`: what may be read may have changed. */
  constructor(ring: Ring, look: () => void) {
    this.#ring = ring;
    this.#look = look;
    this.#holds = new Holds(look);
  }

  get size(): number {
    return this.#viewers.size;
  }

  get isFull(): boolean {
    return this.#viewers.size >= limits.terminalViewersMax;
  }

  mayRead(): boolean {
    const { end } = this.#ring;
    const mustStay = end + readBytesMax - limits.terminalRingBytes;
    let isFollowed = false;
    for (const viewer of this.#viewers) isFollowed ||= this.#follows(viewer);
    if (isFollowed) this.#holds.yieldTo(mustStay);
    if (this.#holds.floor < mustStay) return false;
    if (this.#viewers.size === 0) return true;
    return isFollowed && !this.#isWaitedFor(mustStay);
  }

  /** `after`: what it has from an earlier connection, which then need not be waited for. */
  join(viewer: Viewer, after: number | undefined): void {
    if (after !== undefined) this.#holds.back(after, this.#viewers);
    this.#viewers.add(viewer);
  }

  leave(viewer: Viewer, { mayReturn }: { mayReturn: boolean }): void {
    if (!this.#viewers.delete(viewer)) return;
    if (mayReturn) this.#holds.keepFor(viewer);
    if (this.#viewers.size === 0) {
      clearTimeout(this.#cutTimer);
      clearTimeout(this.#patienceTimer);
    }
    this.#look();
  }

  /** There is more. */
  pump(): void {
    for (const viewer of this.#viewers) viewer.pump();
  }

  tellSize(except: Viewer | undefined): void {
    for (const viewer of this.#viewers) if (viewer !== except) viewer.tellSize();
  }

  /** Nothing will be written any more: each gets the rest and the exit; who does not take it in time is cut off. */
  finish(exit: Exit): void {
    this.#holds.clear();
    clearTimeout(this.#patienceTimer);
    for (const viewer of this.#viewers) viewer.finish(exit);
    if (this.#viewers.size === 0) return;
    this.#cutTimer = setTimeout(() => {
      for (const viewer of this.#viewers) viewer.cut();
    }, limits.terminalBackMs);
  }

  #follows({ position }: Viewer): boolean {
    return position !== undefined && this.#ring.end - position <= behindBytesMax;
  }

  /** The one that is known to have got furthest is about to be overtaken by others, and has patience left. */
  #isWaitedFor(mustStay: number): boolean {
    let leader: { viewer: Viewer; known: number } | undefined;
    for (const viewer of this.#viewers) {
      const { known } = viewer;
      if (known === undefined || known < this.#ring.start) continue;
      const isAhead = leader === undefined || known > leader.known;
      if (isAhead || (known === leader?.known && !this.#follows(viewer)))
        leader = { viewer, known };
    }
    if (leader === undefined || leader.known >= mustStay) return false;
    if (this.#follows(leader.viewer)) return false;
    const leftMs = leader.viewer.patience.spend();
    if (leftMs === 0) return false;
    clearTimeout(this.#patienceTimer);
    this.#patienceTimer = setTimeout(this.#look, leftMs + 1);
    return true;
  }
}
