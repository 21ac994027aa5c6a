/**
 * Owns who watches a terminal, and from that how fast it may be read: at the pace of the fastest viewer, and never
 * over what one that was cut off has yet to fetch.
 * Does not own what one viewer is sent (viewer.ts).
 */
import { limits } from "../../../src/protocol/limits.ts";
import type { Exit } from "../tree/tree.ts";
import type { Ring } from "./ring.ts";
import type { Viewer } from "./viewer.ts";

/** How far the fastest viewer may be behind: enough to keep it busy, little to wait for after Ctrl-C. */
const behindBytesMax = limits.terminalSocketBytes;
/** One read may bring this much, after it was allowed. */
const readBytesMax = 512 * 1024;

type Hold = { offset: number; timer: Timer };

export class Audience {
  readonly #ring: Ring;
  readonly #look: () => void;
  readonly #viewers = new Set<Viewer>();
  #holds: Hold[] = [];
  #cutTimer: Timer | undefined;

  /** `look`: what may be read may have changed. */
  constructor(ring: Ring, look: () => void) {
    this.#ring = ring;
    this.#look = look;
  }

  get size(): number {
    return this.#viewers.size;
  }

  get isFull(): boolean {
    return this.#viewers.size >= limits.terminalViewersMax;
  }

  mayRead(): boolean {
    const { end } = this.#ring;
    for (const { offset } of this.#holds) {
      if (end + readBytesMax > offset + limits.terminalRingBytes) return false;
    }
    if (this.#viewers.size === 0) return true;
    for (const { position } of this.#viewers) {
      if (position !== undefined && end - position <= behindBytesMax) return true;
    }
    return false;
  }

  /** `after`: what it has from an earlier connection, which then need not be waited for. */
  join(viewer: Viewer, after: number | undefined): void {
    this.#viewers.add(viewer);
    if (after !== undefined) this.#letGo(after);
  }

  leave(viewer: Viewer): void {
    if (!this.#viewers.delete(viewer)) return;
    const { mayReturnTo } = viewer;
    if (mayReturnTo !== undefined && mayReturnTo >= this.#ring.start) this.#hold(mayReturnTo);
    if (this.#viewers.size === 0) clearTimeout(this.#cutTimer);
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
    for (const { timer } of this.#holds) clearTimeout(timer);
    this.#holds = [];
    for (const viewer of this.#viewers) viewer.finish(exit);
    if (this.#viewers.size === 0) return;
    this.#cutTimer = setTimeout(() => {
      for (const viewer of this.#viewers) viewer.cut();
    }, limits.terminalBackMs);
  }

  #hold(offset: number): void {
    const oldest = this.#holds.length < limits.terminalViewersMax ? undefined : this.#holds[0];
    if (oldest !== undefined) this.#drop(oldest);
    const timer = setTimeout(() => {
      this.#drop(hold);
      this.#look();
    }, limits.terminalBackMs);
    const hold = { offset, timer };
    this.#holds.push(hold);
  }

  /** Whoever came back with `after` is the one that had acknowledged most, up to that. */
  #letGo(after: number): void {
    const candidates = this.#holds.filter(({ offset }) => offset <= after);
    const his = candidates.sort((one, other) => other.offset - one.offset)[0];
    if (his !== undefined) this.#drop(his);
    this.#look();
  }

  #drop(hold: Hold): void {
    clearTimeout(hold.timer);
    this.#holds = this.#holds.filter((one) => one !== hold);
  }
}
