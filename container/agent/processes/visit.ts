/**
 * Owns one connection of a reader to a log, and the guess which later one is his next: nobody says who he is.
 * Does not own how long who is waited for (floor.ts). Where the guess could be wrong, two connections are two readers.
 */
import { limits } from "../../../src/protocol/limits.ts";

/** `from`: where it began. `form`: what it asked for, which a reader who comes back asks for again. */
export type Place = { readonly from: number; readonly position: number; readonly form: string };

/** Who is gone is missed soon after something is sent to him, on a busy machine too: who is not is there. */
const missedMs = 2_000;

/** How a reader came first, so far as is known: his connections after that one are no other reader's. */
type Coming = { from: number; isAnywhere: boolean; order: number; at: number };

export class Visit {
  readonly place: Place;
  readonly order: number;
  #coming: Coming;
  /** He was there then, proven by what was sent to him. */
  #thereAt = Number.NEGATIVE_INFINITY;
  #sentAt: number | undefined;

  constructor(place: Place, isAnywhere: boolean, { order, at }: { order: number; at: number }) {
    this.place = place;
    this.order = order;
    this.#coming = { from: place.from, isAnywhere, order, at };
  }

  get coming(): Coming {
    return this.#coming;
  }

  /** It is the next connection of that one's reader. */
  continues(earlier: Visit): void {
    this.#coming = earlier.coming;
  }

  sent(now: number): void {
    if (this.#sentAt !== undefined && now - this.#sentAt < missedMs) return;
    this.#thereAt = this.#sentAt ?? this.#thereAt;
    this.#sentAt = now;
  }

  /** Whether he was there after that time. */
  wasThere(after: number, now: number): boolean {
    if (this.#sentAt === undefined) return false;
    return (now - this.#sentAt >= missedMs ? this.#sentAt : this.#thereAt) >= after;
  }
}

/** Whether the reader of `earlier`, which is cut off, began `other` before that was seen. */
export function isNextOf({ place, coming }: Visit, earlier: Visit, now: number): boolean {
  const { from, position, form } = earlier.place;
  // Known as somebody else's, or as his before this one.
  if (coming.order <= earlier.order || place.form !== form) return false;
  if (coming.from < from || coming.from > position) return false;
  if (position - coming.from > limits.processReplayBytes) return false;
  // At the beginning any two meet, elsewhere only who has been there.
  if (coming.from === from && coming.isAnywhere) return false;
  return !earlier.wasThere(coming.at, now);
}

/**
 * Whether `visit`, which is cut off, was begun late: its reader had given it up and asked for the same once more, and
 * that arrived earlier. Nobody else begins in the midst of a log at just that byte, but who was there before.
 */
export function isOvertaken(visit: Visit, { place, order }: Visit, now: number): boolean {
  const { coming } = visit;
  if (coming.order !== visit.order || coming.isAnywhere || order > visit.order) return false;
  const isSame = place.from === visit.place.from && place.form === visit.place.form;
  return isSame && !visit.wasThere(coming.at, now);
}
