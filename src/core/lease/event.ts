/**
 * Owns what can happen to a lease, and what whoever asked is told. Does not own the moves (step.ts).
 */
import type { BerthError } from "../../protocol/errors.ts";
import type { Lease, LossReason } from "./lease.ts";

export type LeaseEvent =
  | {
      type: "acquire";
      ticket: string;
      /** For the case that it is granted now. */
      token: string;
      holder: string;
      ttlMs: number;
      queueMs: number;
    }
  /** Its patience is over, or it went away. */
  | { type: "leave"; ticket: string }
  | { type: "renew"; token: string; ttlMs?: number | undefined }
  /** It is to last until it is let go; `until` is what others are shown. */
  | { type: "pin"; token: string; until: number }
  /** A gated call of the holder begins, or has ended. */
  | { type: "used"; token: string }
  | { type: "release"; token: string; force: boolean }
  /** Somebody with the right to takes it away. */
  | { type: "take"; reason: LossReason }
  /** The agent has confirmed: nothing below this fence is left, and nothing below it may begin. */
  | { type: "drained"; fence: number }
  /** A fresh instance of the object speaks to the agent for the first time. */
  | { type: "instance" }
  /** The sandbox is going away for good. */
  | { type: "destroyed" }
  | { type: "tick" };

export type LeaseReply =
  | { done: true }
  | { granted: true }
  | { queued: { position: number } }
  | { released: "released" | "draining" }
  | { refuse: BerthError };

export type LeaseStep = { lease: Lease; reply: LeaseReply };

export const done: LeaseReply = { done: true };

export function refuse(lease: Lease, error: BerthError): LeaseStep {
  return { lease, reply: { refuse: error } };
}
