/**
 * Owns the facts of a lease: who holds it, who waits, which ones ended lately.
 * Does not own the moves (step.ts). Everything here is a row of the object; nothing is remembered elsewhere.
 */

export type LossReason = "expired" | "broken" | "forced" | "disconnected" | "revoked";

/** How a lease came to its end, for a holder who asks later. */
export type EndReason = LossReason | "released" | "unused" | "destroyed";

export type Waiter = {
  /** Order of arrival, for the life of the sandbox. */
  seq: number;
  ticket: string;
  holder: string;
  ttlMs: number;
  since: number;
  /** Its patience ends. */
  until: number;
  /** It must have asked again by then. */
  pollBy: number;
};

export type Grant = {
  token: string;
  ticket: string;
  holder: string;
  ttlMs: number;
  fence: number;
  acquiredAt: number;
};

export type Ended = { token: string; ticket: string; reason: EndReason; at: number };

export type LeaseState =
  | { name: "free" }
  /** The head of the queue has the turn, and must take it. */
  | { name: "offered"; until: number }
  | {
      name: "held";
      grant: Grant;
      /** Of a pinned one: when it is expected to be let go. */
      expiresAt: number;
      /** Given to a waiting call: must be used by then. */
      useBy?: number;
      /** It ends by a release or by whoever takes it, never by time. */
      pinned?: true;
    }
  /** Lost: the agent must confirm that nothing of it is left. */
  | {
      name: "draining";
      fence: number;
      holder: string;
      reason: LossReason;
      since: number;
      until: number;
      /** No confirmation came in time: the container must go. */
      replace: boolean;
    };

export type Lease = {
  state: LeaseState;
  /** Strictly in order of arrival. While `offered`, the first of them has the turn. */
  waiters: readonly Waiter[];
  /** Those that ended within the last ten minutes, oldest first. */
  ended: readonly Ended[];
  /** The highest number ever given: to a grant, to a loss, to an instance of the object. */
  fence: number;
  nextSeq: number;
};

export const newLease: Lease = {
  state: { name: "free" },
  waiters: [],
  ended: [],
  fence: 0,
  nextSeq: 1,
};

/** What is in flight through the gate, by those who know: memory, or the agent after a wake. */
export type Busy = {
  /** Gated calls without the present lease. */
  others: number;
  /** Gated calls of the present holder. */
  own: number;
};
