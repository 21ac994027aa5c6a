/** Admits gated calls, and operations during which none may run. Makes sure that a container runs. */
import { checkLease, notGrantedError } from "../../../core/lease/refusals.ts";
import { admitCall } from "../../../core/sandbox/admit.ts";
import type { Incarnation, Start } from "../../../core/sandbox/record.ts";
import { BerthError } from "../../../protocol/errors.ts";
import { limits } from "../../../protocol/limits.ts";
import type { SandboxActor } from "../actor.ts";
import type { Opener } from "../dispatch/opener.ts";
import { newestSavedTree } from "../lifecycle/checkpoint-rows.ts";
import { acquireOrThrow } from "./leases.ts";

export type GatedCaller = {
  /** The token of the caller's lease, if it has one. */
  token?: string | undefined;
  /** Instead of a token: how long the call may wait for a lease of its own. */
  waitMs?: number | undefined;
  holder?: string | undefined;
  /** Whether the call may start a container. */
  mayWake: boolean;
  /** The idempotency key, if the call takes one. */
  key?: string | undefined;
  /** The name by which the caller can cancel the call. */
  callId?: string | undefined;
  /** If the caller's token or key is revoked while the call waits, the call does not begin. */
} & Opener;

/** Call `end` once, after the last byte of the response. */
export type AdmittedCall = {
  agent: Incarnation;
  fence: number;
  token: string | undefined;
  end: () => void;
};

export async function admitGatedCall(
  actor: SandboxActor,
  caller: GatedCaller,
  /** Throws once the call is not wanted any more. */
  refuseUnwanted = () => {},
): Promise<AdmittedCall> {
  if (actor.freeze.isActive) refuseBeforeWaiting(actor, caller);
  await actor.agentClient.untilReachable();
  const ownToken = await acquireForOneCall(actor, caller, "a waiting call", refuseUnwanted);
  const token = caller.token ?? ownToken;
  // Expired leases end first: the alarm may be late.
  actor.stepLease({ type: "tick" });
  const refused = checkLease(actor.facts.lease, token);
  if (refused !== undefined) throw refused;
  const id = actor.inFlight.begin(token);
  let isEnded = false;
  const end = () => {
    if (isEnded) return;
    isEnded = true;
    if (actor.existing === undefined) return actor.inFlight.end(id);
    actor.idleness.recordUse();
    // Before the call stops to count: after that, a lease past its time has expired.
    if (token !== undefined) actor.stepLease({ type: "used", token });
    actor.inFlight.end(id);
    if (ownToken !== undefined) actor.stepLease({ type: "release", token: ownToken, force: false });
    actor.inFlightChanged();
  };
  try {
    actor.idleness.recordUse();
    if (token !== undefined) markLeaseUsed(actor, token);
    const agent = await ensureRunning(actor, caller.mayWake);
    // The lease may have been lost while the container started.
    const lost = token === undefined ? undefined : checkLease(actor.facts.lease, token);
    if (lost !== undefined) throw lost;
    actor.revocation.refuse(caller);
    refuseUnwanted();
    return { agent, fence: actor.facts.lease.fence, token, end };
  } catch (error) {
    end();
    throw error;
  }
}

/** Refuses a call without the lease at once, instead of after the snapshot. Expired leases are settled later. */
function refuseBeforeWaiting(actor: SandboxActor, { token, waitMs }: GatedCaller): void {
  const { lease } = actor.facts;
  const isHeld = lease.state.name === "held" && actor.now() < lease.state.expiresAt;
  if (!isHeld || waitMs !== undefined) return;
  const refused = checkLease(lease, token);
  if (refused !== undefined) throw refused;
}

/** The agent that a call may use; starts a container if there is none, once for all callers that wait. */
export async function ensureRunning(actor: SandboxActor, mayWake: boolean): Promise<Incarnation> {
  const until = actor.host.clock() + limits.waitMaxMs;
  for (;;) {
    await actor.link.ensureAlive();
    const admission = admitCall(actor.facts.sandbox, mayWake);
    if ("refuse" in admission) throw admission.refuse;
    if ("go" in admission) return admission.go;
    if ("wake" in admission) {
      actor.stepSandbox({ type: "wake", start: newStart(actor) });
      continue;
    }
    if (!(await actor.waiters.waitForChange(until - actor.host.clock()))) {
      throw new BerthError("unavailable", "The sandbox is still starting.", {
        hint: "Try again in a moment.",
        facts: { state: actor.facts.sandbox.state.name },
      });
    }
  }
}

/** Where files do not outlive their container, a lost sandbox starts from the newest saved tree. */
export function newStart(actor: SandboxActor): Start {
  const lost = actor.existing?.sandbox.state.name === "failed" && !actor.container.keepsFiles;
  const snapshot = lost ? newestSavedTree(actor.host, actor.now()) : undefined;
  return {
    startId: actor.host.randomId(16),
    secret: actor.host.randomId(43),
    ...(snapshot === undefined ? {} : { snapshot }),
  };
}

/** A call with `waitMs` and no token queues for a lease, runs with it, and releases it. */
async function acquireForOneCall(
  actor: SandboxActor,
  { token, waitMs, holder }: GatedCaller,
  what: string,
  refuseUnwanted?: () => void,
): Promise<string | undefined> {
  if (token !== undefined || waitMs === undefined) return undefined;
  const call = { holder: holder ?? what, waitMs, ttlMs: limits.leaseTtlMs };
  return acquireOrThrow(actor, call, refuseUnwanted);
}

/** A lease cannot end while its call runs, so its use is written only if it must be used soon. */
function markLeaseUsed(actor: SandboxActor, token: string): void {
  const { state } = actor.facts.lease;
  if (state.name === "held" && state.useBy !== undefined) actor.stepLease({ type: "used", token });
}

type ExclusiveOptions = {
  what: string;
  /** Whether the operation counts as in flight. A pause does not: the state `pausing` shows it. */
  counted: boolean;
  force?: { by: string } | undefined;
};

/**
 * Begins an operation during which no gated call may run. The caller holds the lease, waits for it, takes it by force,
 * or is refused. Call the returned function once, at the end.
 */
export async function beginExclusive(
  actor: SandboxActor,
  caller: GatedCaller,
  { what, counted, force }: ExclusiveOptions,
): Promise<() => void> {
  await actor.agentClient.untilReachable();
  if (force !== undefined) {
    actor.stepLease({ type: "take", reason: "forced" }, force.by);
    return counted ? countInFlight(actor, undefined) : () => undefined;
  }
  const token = await acquireForOneCall(actor, caller, what);
  if (token !== undefined) {
    const end = counted ? countInFlight(actor, token) : () => undefined;
    const release = () => {
      end();
      if (actor.existing !== undefined) actor.stepLease({ type: "release", token, force: true });
    };
    try {
      actor.revocation.refuse(caller);
    } catch (error) {
      release();
      throw error;
    }
    return release;
  }
  actor.revocation.refuse(caller);
  actor.stepLease({ type: "tick" });
  const refused = checkLease(actor.facts.lease, caller.token);
  if (refused !== undefined) throw refused;
  const busy = actor.countInFlight();
  const inFlight = busy.others + busy.own;
  if (inFlight > 0) throw notGrantedError(actor.facts.lease, { others: inFlight, own: 0 });
  return counted ? countInFlight(actor, caller.token) : () => undefined;
}

function countInFlight(actor: SandboxActor, token: string | undefined): () => void {
  const id = actor.inFlight.begin(token);
  return () => {
    actor.inFlight.end(id);
    actor.inFlightChanged();
  };
}
