/**
 * Owns the moves of a lease. Each first settles what time has ended, then does what was asked, then offers.
 * Does not own calls in flight (an argument), nor telling the agent: `draining` asks for that.
 */
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { Busy, Ended, EndReason, Lease, LossReason, Waiter } from "./lease.ts";
import { leaseLost, notGranted, queueFull } from "./refusals.ts";

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

const done: LeaseReply = { done: true };

export function stepLease(before: Lease, event: LeaseEvent, now: number, busy: Busy): LeaseStep {
  // It does not know yet what runs: it must neither end a lease that a call keeps alive nor offer one.
  if (event.type === "instance") {
    return { lease: { ...before, fence: before.fence + 1 }, reply: done };
  }
  const { lease, reply } = decide(settle(before, now, busy), event, now, busy);
  return { lease: offer(lease, now, busy), reply };
}

type Decided = Exclude<LeaseEvent, { type: "instance" }>;

function decide(lease: Lease, event: Decided, now: number, busy: Busy): LeaseStep {
  switch (event.type) {
    case "acquire":
      return acquire(lease, event, now, busy);
    case "leave":
      return { lease: without(lease, event.ticket), reply: done };
    case "renew":
      return renew(lease, event.token, event.ttlMs, now);
    case "pin":
      return pin(lease, event);
    case "used":
      return renew(lease, event.token, undefined, now);
    case "release":
      return release(lease, event.token, event.force, now, busy);
    case "take":
      return {
        lease: lease.state.name === "held" ? lose(lease, event.reason, now) : lease,
        reply: done,
      };
    case "drained":
      return { lease: drained(lease, event.fence), reply: done };
    case "destroyed":
      return { lease: closed(lease, now), reply: done };
    case "tick":
      return { lease, reply: done };
  }
}

/** What time has ended. Exactly once: afterwards it is no longer there to end. */
export function settle(lease: Lease, now: number, busy: Busy): Lease {
  let next = forgetEnded(dropWaiters(lease, now), now);
  const { state } = next;
  if (state.name === "offered" && now >= state.until) {
    next = { ...next, state: { name: "free" }, waiters: next.waiters.slice(1) };
  }
  if (state.name === "held" && busy.own === 0) {
    if (state.pinned === true) return next;
    if (state.useBy !== undefined && now >= state.useBy) return end(next, "unused", now);
    if (now >= state.expiresAt) return lose(next, "expired", now);
  }
  if (state.name === "draining" && now >= state.until) {
    const until = now + limits.leaseDrainLookMs;
    return { ...next, state: { ...state, replace: true, until } };
  }
  return next;
}

/** A free lease goes to whoever came first, once nothing of anybody else's is in flight. */
function offer(lease: Lease, now: number, busy: Busy): Lease {
  if (lease.state.name !== "free" || lease.waiters.length === 0 || busy.others > 0) return lease;
  return { ...lease, state: { name: "offered", until: now + limits.leaseOfferMs } };
}

type Acquire = Extract<LeaseEvent, { type: "acquire" }>;

function acquire(lease: Lease, event: Acquire, now: number, busy: Busy): LeaseStep {
  const { state, waiters } = lease;
  if (state.name === "held" && state.grant.ticket === event.ticket) {
    return { lease: used(lease, now), reply: { granted: true } };
  }
  const past = lease.ended.findLast((ended) => ended.ticket === event.ticket);
  if (past !== undefined) return refuse(lease, leaseLost(past.reason));
  const position = waiters.findIndex((waiter) => waiter.ticket === event.ticket);
  if (position >= 0) return again(lease, position, event, now);
  if (state.name === "free" && waiters.length === 0 && busy.others === 0) {
    return { lease: grant(lease, event, now, false), reply: { granted: true } };
  }
  if (event.queueMs === 0) return refuse(lease, notGranted(lease, busy));
  const full = queueFull(lease, event.holder);
  if (full !== undefined) return refuse(lease, full);
  const waiter: Waiter = {
    seq: lease.nextSeq,
    ticket: event.ticket,
    holder: event.holder,
    ttlMs: event.ttlMs,
    since: now,
    until: now + event.queueMs,
    pollBy: now + limits.leasePollMs,
  };
  return {
    lease: { ...lease, waiters: [...waiters, waiter], nextSeq: lease.nextSeq + 1 },
    reply: { queued: { position: waiters.length } },
  };
}

/** A waiter asks again: it keeps its place, or takes its turn. */
function again(lease: Lease, position: number, event: Acquire, now: number): LeaseStep {
  const waiter = lease.waiters[position];
  if (waiter === undefined) throw new Error("a waiter stands at its position");
  if (position === 0 && lease.state.name === "offered") {
    const { ticket, holder, ttlMs } = waiter;
    const rest = { ...lease, waiters: lease.waiters.slice(1) };
    const granted = grant(rest, { ticket, holder, ttlMs, token: event.token }, now, true);
    return { lease: granted, reply: { granted: true } };
  }
  const waiters = lease.waiters.with(position, { ...waiter, pollBy: now + limits.leasePollMs });
  return { lease: { ...lease, waiters }, reply: { queued: { position } } };
}

function grant(
  lease: Lease,
  to: { ticket: string; token: string; holder: string; ttlMs: number },
  now: number,
  waited: boolean,
): Lease {
  const { ticket, token, holder, ttlMs } = to;
  const fence = lease.fence + 1;
  return {
    ...lease,
    fence,
    state: {
      name: "held",
      grant: { ticket, token, holder, ttlMs, fence, acquiredAt: now },
      expiresAt: now + ttlMs,
      ...(waited ? { useBy: now + limits.leaseUseMs } : {}),
    },
  };
}

function renew(lease: Lease, token: string, ttlMs: number | undefined, now: number): LeaseStep {
  const { state } = lease;
  if (state.name !== "held" || state.grant.token !== token) {
    return refuse(lease, lostBy(lease, token));
  }
  return { lease: used(lease, now, ttlMs), reply: { granted: true } };
}

/** Whoever uses a lease has it for another whole `ttlMs`. */
function used(lease: Lease, now: number, ttlMs?: number): Lease {
  if (lease.state.name !== "held") return lease;
  const { grant, expiresAt, pinned } = lease.state;
  const renewed = ttlMs === undefined ? grant : { ...grant, ttlMs };
  // A call with the token never shortens what a renewal gave.
  const until = now + renewed.ttlMs;
  return {
    ...lease,
    state: {
      name: "held",
      grant: renewed,
      expiresAt: ttlMs === undefined ? Math.max(expiresAt, until) : until,
      ...(pinned === undefined ? {} : { pinned }),
    },
  };
}

function pin(lease: Lease, { token, until }: Extract<LeaseEvent, { type: "pin" }>): LeaseStep {
  const { state } = lease;
  if (state.name !== "held" || state.grant.token !== token) {
    return refuse(lease, lostBy(lease, token));
  }
  const pinned: Lease["state"] = {
    name: "held",
    grant: state.grant,
    expiresAt: until,
    pinned: true,
  };
  return { lease: { ...lease, state: pinned }, reply: { granted: true } };
}

function release(lease: Lease, token: string, force: boolean, now: number, busy: Busy): LeaseStep {
  const { state, ended } = lease;
  if (state.name !== "held" || state.grant.token !== token) {
    const past = ended.findLast((one) => one.token === token);
    if (past?.reason === "released") {
      const drains = state.name === "draining" && past === ended.at(-1);
      return { lease, reply: { released: drains ? "draining" : "released" } };
    }
    return refuse(lease, lostBy(lease, token));
  }
  if (busy.own === 0) {
    return { lease: end(lease, "released", now), reply: { released: "released" } };
  }
  if (!force) {
    return refuse(
      lease,
      new BerthError("lease_busy", `${busy.own} calls of this lease are still running.`, {
        hint: "Wait for them, or release with ?force=true to end them.",
        facts: { running: busy.own },
      }),
    );
  }
  // It gave the lease up itself: asked again, that is what it is told.
  return { lease: lose(lease, "forced", now, "released"), reply: { released: "draining" } };
}

/** The fence grows at once; who is next waits until the agent has confirmed it. */
function lose(lease: Lease, reason: LossReason, now: number, told: EndReason = reason): Lease {
  if (lease.state.name !== "held") return lease;
  const { holder } = lease.state.grant;
  const fence = lease.fence + 1;
  return {
    ...end(lease, told, now),
    fence,
    state: {
      name: "draining",
      fence,
      holder,
      reason,
      since: now,
      until: now + limits.leaseDrainMs,
      replace: false,
    },
  };
}

function drained(lease: Lease, fence: number): Lease {
  if (lease.state.name !== "draining" || fence < lease.state.fence) return lease;
  return { ...lease, state: { name: "free" } };
}

/** It ended with nothing of it running. */
function end(lease: Lease, reason: EndReason, now: number): Lease {
  if (lease.state.name !== "held") return lease;
  const { token, ticket } = lease.state.grant;
  const ended: Ended[] = [...lease.ended, { token, ticket, reason, at: now }];
  return {
    ...lease,
    state: { name: "free" },
    ended: ended.slice(-limits.leaseEndedMax),
  };
}

function closed(lease: Lease, now: number): Lease {
  const held = lease.state.name === "held" ? end(lease, "destroyed", now) : lease;
  return { ...held, state: { name: "free" }, waiters: [], fence: held.fence + 1 };
}

function dropWaiters(lease: Lease, now: number): Lease {
  const [head] = lease.waiters;
  // While the turn is offered its own limit counts, not the head's polling.
  const offered = lease.state.name === "offered" ? head : undefined;
  const stays = (waiter: Waiter) =>
    waiter === offered || (now < waiter.until && now < waiter.pollBy);
  if (lease.waiters.every(stays)) return lease;
  return { ...lease, waiters: lease.waiters.filter(stays) };
}

function forgetEnded(lease: Lease, now: number): Lease {
  const [oldest] = lease.ended;
  if (oldest === undefined || now < oldest.at + limits.leaseEndedMs) return lease;
  return { ...lease, ended: lease.ended.filter(({ at }) => now < at + limits.leaseEndedMs) };
}

function without(lease: Lease, ticket: string): Lease {
  const at = lease.waiters.findIndex((waiter) => waiter.ticket === ticket);
  if (at < 0) return lease;
  const state =
    at === 0 && lease.state.name === "offered" ? { name: "free" as const } : lease.state;
  return { ...lease, state, waiters: lease.waiters.toSpliced(at, 1) };
}

function lostBy(lease: Lease, token: string): BerthError {
  return leaseLost(lease.ended.findLast((ended) => ended.token === token)?.reason ?? "unknown");
}

function refuse(lease: Lease, error: BerthError): LeaseStep {
  return { lease, reply: { refuse: error } };
}
