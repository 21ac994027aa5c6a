/** The calls on the lease. A waiting call only steps the lease again when it is woken. */
import type { LeaseReply } from "../../../core/lease/lease.ts";
import { waitTimeoutError } from "../../../core/lease/refusals.ts";
import { viewGrant, viewLease } from "../../../core/lease/view.ts";
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
  /** Throws once the lease is no longer wanted; called before each attempt. */
  refuseUnwanted = () => {},
): Promise<LeaseGranted | LeaseQueued> {
  await actor.link.ensureGreeted();
  const ticket = call.ticket ?? actor.host.randomId(32);
  const queueMs = call.queueMs ?? call.waitMs;
  const end = actor.host.clock() + call.waitMs;
  // A place of this call itself ends with it, though it may outlast the wait by a millisecond.
  const keepsPlace = call.queueMs !== undefined || queueIndexOf(actor, ticket) >= 0;
  for (;;) {
    actor.refuseIfDestroyed();
    try {
      refuseUnwanted();
    } catch (error) {
      // The next waiter must not wait for a call that will never ask again.
      actor.stepLease({ type: "leave", ticket });
      throw error;
    }
    const reply = orThrow(
      actor.stepLease({
        type: "acquire",
        ticket,
        token: actor.host.randomId(32),
        holder: call.holder,
        ttlMs: call.ttlMs,
        queueMs,
      }),
    );
    if ("granted" in reply) {
      actor.idleness.recordUse();
      return viewGrant(actor.facts.lease);
    }
    if (await actor.waiters.waitForTurn(ticket, end - actor.host.clock())) continue;
    actor.refuseIfDestroyed();
    const index = queueIndexOf(actor, ticket);
    const waiter = actor.facts.lease.waiters[index];
    if (keepsPlace && waiter !== undefined && waiter.until > actor.now()) {
      return { ticket, position: index, pollWithinMs: limits.leasePollMs };
    }
    const refused = waitTimeoutError(actor.facts.lease);
    actor.stepLease({ type: "leave", ticket });
    throw refused;
  }
}

function queueIndexOf({ existing }: SandboxActor, ticket: string): number {
  return existing?.lease.waiters.findIndex((waiter) => waiter.ticket === ticket) ?? -1;
}

/** For a call that needs a lease of its own: returns its token, or throws why it did not get one in time. */
export async function acquireOrThrow(
  actor: SandboxActor,
  call: { holder: string; ttlMs: number; waitMs: number; ticket?: string },
  refuseUnwanted?: () => void,
): Promise<string> {
  const { waitMs, ticket } = call;
  const lease = await acquire(actor, { ...call, queueMs: waitMs, ticket }, refuseUnwanted);
  if ("token" in lease) return lease.token;
  actor.stepLease({ type: "leave", ticket: lease.ticket });
  throw waitTimeoutError(actor.facts.lease);
}

export async function renew(
  actor: SandboxActor,
  token: string,
  ttlMs: number | undefined,
): Promise<LeaseGranted> {
  await actor.link.ensureGreeted();
  actor.refuseIfDestroyed();
  orThrow(actor.stepLease({ type: "renew", token, ttlMs }));
  actor.idleness.recordUse();
  return viewGrant(actor.facts.lease);
}

export async function release(
  actor: SandboxActor,
  token: string,
  force: boolean,
): Promise<LeaseReleased> {
  await actor.link.ensureGreeted();
  actor.refuseIfDestroyed();
  const reply = orThrow(actor.stepLease({ type: "release", token, force }));
  return { state: "released" in reply ? reply.released : "released" };
}

/** Takes the lease from its holder. The dispatcher has checked the right. */
export async function breakLease(
  actor: SandboxActor,
  by: string,
  reason: string,
): Promise<LeaseReleased> {
  await actor.link.ensureGreeted();
  actor.refuseIfDestroyed();
  actor.stepLease({ type: "take", reason: "broken" }, `${by}: ${reason}`);
  return { state: actor.facts.lease.state.name === "draining" ? "draining" : "released" };
}

export function get(actor: SandboxActor): LeaseView {
  return viewLease(actor.facts.lease, actor.now());
}

function orThrow(reply: LeaseReply): Exclude<LeaseReply, { refuse: unknown }> {
  if ("refuse" in reply) throw reply.refuse;
  return reply;
}
