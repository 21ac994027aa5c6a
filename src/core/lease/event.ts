/**
 * The events of a lease and the replies to them. See step.ts for the transitions.
 */
import type { BerthError } from "../../protocol/errors.ts";
import type { Lease, LossReason } from "./lease.ts";

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
