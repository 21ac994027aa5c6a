/**
 * Owns up to where a log has been read, for the process that waits until somebody has: the slowest reader's place.
 * Does not own what is kept (log.ts), nor who is the next connection of whom (visit.ts). A reader who was cut off
 * counts on for a while, so that he loses nothing.
 */
import { limits } from "../../../src/protocol/limits.ts";
import { isNextOf, isOvertaken, type Place, Visit } from "./visit.ts";

/** `position`: held for him. */
type Gone = { visit: Visit; position: number; timer: ReturnType<typeof setTimeout> };

/** As many as may be connected: more are not waited for. */
const goneMax = limits.processFollowersMax;

export class Floor {
  /** In the order in which they began. */
  readonly #visits = new Map<Place, Visit>();
  /** In the order in which they were missed. */
  readonly #gone = new Set<Gone>();
  readonly #backMs: number;
  readonly #onRise: () => void;
  readonly #now: () => number;
  #furthest = 0;
  #begun = 0;

  /** `onRise`: it may have risen by itself. */
  constructor(backMs: number, onRise: () => void, now = () => performance.now()) {
    this.#backMs = backMs;
    this.#onRise = onRise;
    this.#now = now;
  }

  get readers(): number {
    return this.#visits.size;
  }

  /** Without a reader: the furthest that ever was delivered. */
  get value(): number {
    let slowest = Number.POSITIVE_INFINITY;
    for (const { position } of this.#visits.keys()) slowest = Math.min(slowest, position);
    for (const { position } of this.#gone) slowest = Math.min(slowest, position);
    return slowest === Number.POSITIVE_INFINITY ? this.#furthest : slowest;
  }

  /** `isAnywhere`: of all that is kept its place is the oldest, where anybody begins. */
  attach(reader: Place, isAnywhere: boolean): void {
    this.#begun += 1;
    const visit = new Visit(reader, isAnywhere, { order: this.#begun, at: this.#now() });
    const gone = this.#whoCameBack(reader);
    if (gone !== undefined) {
      visit.continues(gone.visit);
      this.#forget(gone);
    }
    this.#visits.set(reader, visit);
  }

  /** Something goes out to him. */
  sent(reader: Place): void {
    this.#visits.get(reader)?.sent(this.#now());
  }

  /** Whether he has connected anew already: an end of a connection is often seen late. */
  isBack(reader: Place): boolean {
    const visit = this.#visits.get(reader);
    return visit !== undefined && this.#nextOf(visit) !== undefined;
  }

  /** `isCut`: he may come back. */
  detach(reader: Place, isCut: boolean): void {
    const visit = this.#visits.get(reader);
    if (visit === undefined) return;
    this.#visits.delete(reader);
    this.#furthest = Math.max(this.#furthest, reader.position);
    if (isCut) {
      const next = this.#nextOf(visit);
      if (next !== undefined) next.continues(visit);
      else if (!this.#isOvertaken(visit)) this.#hold(visit);
    }
    this.#onRise();
  }

  /** Nobody is waited for any more. */
  close(): void {
    for (const gone of [...this.#gone]) this.#forget(gone);
  }

  #nextOf(visit: Visit): Visit | undefined {
    const now = this.#now();
    const gone = [...this.#gone].map((one) => one.visit);
    return [...this.#visits.values(), ...gone].find((other) => isNextOf(other, visit, now));
  }

  #isOvertaken(visit: Visit): boolean {
    const now = this.#now();
    return [...this.#visits.values()].some((other) => isOvertaken(visit, other, now));
  }

  #hold(visit: Visit): void {
    const forget = () => {
      this.#forget(gone);
      this.#onRise();
    };
    const gone = { visit, position: visit.place.position, timer: setTimeout(forget, this.#backMs) };
    this.#gone.add(gone);
    const [oldest] = this.#gone;
    if (this.#gone.size > goneMax && oldest !== undefined) this.#forget(oldest);
  }

  /** One of those whom it may be; it may have been another: what was held for him is held for them. */
  #whoCameBack(reader: Place): Gone | undefined {
    const [first, ...others] = [...this.#gone]
      .filter(({ visit: { place } }) => place.form === reader.form)
      .filter(({ visit: { place } }) => place.position >= reader.from)
      .sort((a, b) => a.visit.place.position - b.visit.place.position);
    for (const other of others) {
      other.position = Math.min(other.position, first?.position ?? other.position);
    }
    return first;
  }

  #forget(gone: Gone): void {
    clearTimeout(gone.timer);
    this.#gone.delete(gone);
  }
}
