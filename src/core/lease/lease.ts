/** Describes what an object stores about its lease, the events that change it, and the replies to them. */
import type { BerthError } from "../../protocol/errors.ts";

/** Why a holder lost its lease. `disconnected`: it held the lease by a connection, which was cut, and did not return. */
export type LossReason = "expired" | "broken" | "forced" | "disconnected" | "revoked";

/** Why a lease ended, for a holder that uses its token afterwards. */
export type EndReason = LossReason | "released" | "unused" | "destroyed";

export type Waiter = {
  /** Order of arrival; never reused in one sandbox. */
  seq: number;
  ticket: string;
  holder: string;
  ttlMs: number;
  since: number;
  /** When it stops waiting. */
  until: number;
  /** It must have polled again by then. */
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

export type EndedLease = { token: string; ticket: string; reason: EndReason; at: number };

export type LeaseState =
  /** Nobody has the lease. It has no deadline: if somebody waits, the end of the other calls offers it. */
  | { name: "free" }
  /** It is the turn of the first waiter, which must poll until `until` to get the lease. */
  | { name: "offered"; until: number }
  /** The holder has the lease until `expiresAt`, and longer while its calls run. */
  | {
      name: "held";
      grant: Grant;
      /** For a pinned lease: when it will probably be released. */
      expiresAt: number;
      /** Set if the lease was granted to a waiter: it must be used by then. */
      useBy?: number;
      /** Set while the holder's connection is cut: it must have returned by then, also if its calls still run. */
      returnBy?: number;
      /** Set for a lease that ends only when it is released or broken, never by time. */
      pinned?: true;
    }
  /** The lease was lost. The agent must confirm until `until` that no work of it is left. */
  | {
      name: "draining";
      fence: number;
      holder: string;
      reason: LossReason;
      since: number;
      until: number;
      /** The confirmation did not come in time, so the container must be replaced. */
      replace: boolean;
    };

export type Lease = {
  state: LeaseState;
  /** In order of arrival. While the lease is `offered`, it is the first one's turn. */
  waiters: readonly Waiter[];
  /** Leases that ended within the last ten minutes, oldest first. */
  ended: readonly EndedLease[];
  /** The highest number ever used: each grant, each loss and each instance of the object takes a new one. */
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

/** Counts of gated calls in flight. They come from memory or, after the object has restarted, from the agent. */
export type CallsInFlight = {
  /** Gated calls without the present lease. */
  others: number;
  /** Gated calls of the present holder. */
  own: number;
};

export type LeaseEvent =
  | {
      type: "acquire";
      ticket: string;
      /** Becomes the lease's token if the lease is granted now. */
      token: string;
      holder: string;
      ttlMs: number;
      queueMs: number;
    }
  /** The waiter timed out or disconnected. */
  | { type: "leave"; ticket: string }
  | { type: "renew"; token: string; ttlMs?: number | undefined }
  /** The lease lasts until it is released; `until` is only shown to others. */
  | { type: "pin"; token: string; until: number }
  /** A gated call of the holder starts or has ended. */
  | { type: "used"; token: string }
  | { type: "release"; token: string; force: boolean }
  /** The connection by which the lease is held was cut. A renewal within `graceMs` continues the lease. */
  | { type: "cut"; token: string; graceMs: number }
  /** Somebody with the right to do so ends the holder's lease. */
  | { type: "take"; reason: LossReason }
  /** The agent has confirmed that no work below this fence runs or can start. */
  | { type: "drained"; fence: number }
  /** A new instance of the object calls the agent for the first time. */
  | { type: "instance" }
  /** The sandbox is being destroyed. */
  | { type: "destroyed" }
  | { type: "tick" };

export type LeaseReply =
  | { done: true }
  | { granted: true }
  | { queued: { position: number } }
  | { released: "released" | "draining" }
  | { refuse: BerthError };

export type LeaseStep = { lease: Lease; reply: LeaseReply };

export const doneReply: LeaseReply = { done: true };

export function refuseStep(lease: Lease, error: BerthError): LeaseStep {
  return { lease, reply: { refuse: error } };
}
