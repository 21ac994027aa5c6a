/**
 * Owns the calls on the lease: acquire with its waiting, renew, release, break, look.
 * Does not own its rules (core/lease): a call that hangs only asks again when it is woken.
 */

import type { LeaseReply } from "../../../core/lease/event.ts";
import { waitTimedOut } from "../../../core/lease/refusals.ts";
import { viewGrant, viewLease } from "../../../core/lease/view.ts";
import { destroyedError } from "../../../core/sandbox/admit.ts";
import { isOver } from "../../../core/sandbox/step.ts";
import type {
  AcquireCall,
  LeaseGranted,
  LeaseQueued,
  LeaseReleased,
  LeaseView,
} from "../../../protocol/lease.ts";
import { limits } from "../../../protocol/limits.ts";
import type { SandboxActor } from "../actor.ts";

export async function acquire(
  actor: SandboxActor,
  call: AcquireCall,
  /** Throws when it is not, at each turn before it is asked for. */
  stillWanted = () => {},
): Promise<LeaseGranted | LeaseQueued> {
  await actor.link.known();
  const ticket = call.ticket ?? actor.host.draw(32);
  const queueMs = call.queueMs ?? call.waitMs;
  const end = actor.host.clock() + call.waitMs;
  // A place of this very call goes with it: by a millisecond it may last longer than the call has waited.
  const keepsPlace = call.queueMs !== undefined || placeOf(actor, ticket) >= 0;
  for (;;) {
    alive(actor);
    try {
      stillWanted();
    } catch (error) {
      // Whoever is next is not to wait for one who will never ask again.
      actor.lease({ type: "leave", ticket });
      throw error;
    }
    const reply = told(
      actor.lease({
        type: "acquire",
        ticket,
        token: actor.host.draw(32),
        holder: call.holder,
        ttlMs: call.ttlMs,
        queueMs,
      }),
    );
    if ("granted" in reply) {
      actor.idleness.active();
      return viewGrant(actor.facts.lease);
    }
    if (await actor.watchers.turn(ticket, end - actor.host.clock())) continue;
    alive(actor);
    const place = placeOf(actor, ticket);
    const waiter = actor.facts.lease.waiters[place];
    if (keepsPlace && waiter !== undefined && waiter.until > actor.now()) {
      return { ticket, position: place, pollWithinMs: limits.leasePollMs };
    }
    const refused = waitTimedOut(actor.facts.lease);
    actor.lease({ type: "leave", ticket });
    throw refused;
  }
}

function placeOf({ known }: SandboxActor, ticket: string): number {
  return known?.lease.waiters.findIndex((waiter) => waiter.ticket === ticket) ?? -1;
}

/** For a call that runs alone: its token, or the reason why it did not get one in time. */
export async function acquireWaiting(
  actor: SandboxActor,
  call: { holder: string; ttlMs: number; waitMs: number; ticket?: string },
  stillWanted?: () => void,
): Promise<string> {
  const { waitMs, ticket } = call;
  const lease = await acquire(actor, { ...call, queueMs: waitMs, ticket }, stillWanted);
  if ("token" in lease) return lease.token;
  actor.lease({ type: "leave", ticket: lease.ticket });
  throw waitTimedOut(actor.facts.lease);
}

export async function renew(
  actor: SandboxActor,
  token: string,
  ttlMs: number | undefined,
): Promise<LeaseGranted> {
  await actor.link.known();
  alive(actor);
  told(actor.lease({ type: "renew", token, ttlMs }));
  actor.idleness.active();
  return viewGrant(actor.facts.lease);
}

export async function release(
  actor: SandboxActor,
  token: string,
  force: boolean,
): Promise<LeaseReleased> {
  await actor.link.known();
  alive(actor);
  const reply = told(actor.lease({ type: "release", token, force }));
  return { state: "released" in reply ? reply.released : "released" };
}

/** For one with the right to: whoever holds it loses it. */
export async function breakLease(
  actor: SandboxActor,
  by: string,
  reason: string,
): Promise<LeaseReleased> {
  await actor.link.known();
  alive(actor);
  actor.lease({ type: "take", reason: "broken" }, `${by}: ${reason}`);
  return { state: actor.facts.lease.state.name === "draining" ? "draining" : "released" };
}

export function look(actor: SandboxActor): LeaseView {
  return viewLease(actor.facts.lease, actor.now());
}

function told(reply: LeaseReply): Exclude<LeaseReply, { refuse: unknown }> {
  if ("refuse" in reply) throw reply.refuse;
  return reply;
}

function alive(actor: SandboxActor): void {
  const { state } = actor.facts.sandbox;
  if (isOver(state) && "reason" in state) throw destroyedError(state.reason);
}
