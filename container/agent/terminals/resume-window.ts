/**
 * Owns what is kept for viewers that were cut off: for ten seconds the ring is not written over from where each of
 * them would go on; for two where somebody watches. Who comes back, or came back before his end was seen, is not
 * waited for any more.
 * Does not own the pace that viewers set who are there (audience.ts).
 */
import { limits } from "../../../src/protocol/limits.ts";
import type { Viewer } from "./viewer.ts";

/** An old connection of somebody who is back already is seen to end within this. */
const overlapMs = 2000;
/** Enough to connect anew; whoever watches would else be held up by one who is not there. */
const besideOthersMs = 2000;

type Hold = { from: number; sent: number; since: number; timers: Timer[] };
type Return = { after: number; at: number; beside: Set<Viewer> };

export class Holds {
  /** Some of it was let go. */
  readonly #changed: () => void;
  #holds: Hold[] = [];
  #returns: Return[] = [];

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /** The oldest byte that must stay. */
  get floor(): number {
    return Math.min(...this.#holds.map(({ from }) => from));
  }

  /** A viewer has gone. */
  keepFor(viewer: Viewer): void {
    const { mayReturnTo: from, sent } = viewer;
    if (from === undefined || this.#isBack(viewer, from)) return;
    const oldest = this.#holds.length < limits.terminalViewersMax ? undefined : this.#holds[0];
    if (oldest !== undefined) this.#drop(oldest);
    const over = setTimeout(() => {
      this.#drop(hold);
      this.#changed();
    }, limits.terminalBackMs);
    const timers = [over, setTimeout(this.#changed, besideOthersMs + 1)];
    const hold: Hold = { from, sent, since: performance.now(), timers };
    this.#holds.push(hold);
  }

  /** Somebody watches, and what is older than this is to be written over. */
  yieldTo(mustStay: number): void {
    const now = performance.now();
    for (const hold of this.#holds) {
      if (hold.from < mustStay && now - hold.since >= besideOthersMs) this.#drop(hold);
    }
  }

  /** Somebody goes on at `after`, while `viewers` are there. */
  back(after: number, viewers: Iterable<Viewer>): void {
    const his = this.#holds
      .filter(({ from, sent }) => from <= after && after <= sent)
      .sort((one, other) => other.from - one.from)[0];
    if (his !== undefined) this.#drop(his);
    else this.#returns.push({ after, at: performance.now(), beside: new Set(viewers) });
    this.#changed();
  }

  clear(): void {
    for (const hold of this.#holds) this.#drop(hold);
    this.#returns = [];
  }

  #isBack(viewer: Viewer, from: number): boolean {
    const now = performance.now();
    this.#returns = this.#returns.filter(({ at }) => now - at < overlapMs);
    const his = this.#returns.find(
      ({ after, beside }) => beside.has(viewer) && from <= after && after <= viewer.sent,
    );
    if (his === undefined) return false;
    this.#returns = this.#returns.filter((one) => one !== his);
    return true;
  }

  #drop(hold: Hold): void {
    for (const timer of hold.timers) clearTimeout(timer);
    this.#holds = this.#holds.filter((one) => one !== hold);
  }
}
